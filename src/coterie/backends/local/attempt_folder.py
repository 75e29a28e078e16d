"""The folder of one attempt: created atomically, with all persistent information about the attempt."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import signal
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count, takewhile
from pathlib import Path

from coterie.backends.local.container_paths import translated
from coterie.backends.local.files import regular_files
from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.backends.local.shim import ownership
from coterie.backends.local.work_order import AttemptEnded, AttemptKey, AttemptLost, WorkOrder
from coterie.errors import UsageError

NEW, TRASH, ENDED = ".new", ".trash", ".ended"
WITHDRAWN = ownership.WITHDRAWN

# Errors of files that are links, folders, devices or FIFOs.
_IRREGULAR = frozenset({errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO})
# Of folders through which others pass, and of those through which only one account does, by its group.
_PASSAGE, _OWN_PASSAGE = 0o711, 0o710

_serial = count()


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """The attempts that start together with an attempt, and its number in the start order."""

    together: tuple[AttemptKey, ...]
    turn: int


@dataclass(frozen=True, slots=True)
class AttemptEnvironment:
    """Environment variables that an order may override, and those that it may not."""

    common: Mapping[str, str]
    fixed: Mapping[str, str]


def make_root(root: Path, *, entered: bool = False) -> None:
    """Create the folder of all attempts, or use the existing one, accessible only by its owner: tasks have secrets.

    With `entered`, accounts of tasks may pass through it to their own folders.
    """
    root.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    # Where it belongs to another user, that user controls its permissions.
    with contextlib.suppress(PermissionError):
        if entered and stat.S_IMODE(root.stat().st_mode) != _PASSAGE:
            # What was made before was protected by the root alone.
            for folder in (*root.glob("*/"), *root.glob(f"{ENDED}/*/"), root / NEW, root / TRASH):
                if folder.is_dir() and not folder.is_symlink():
                    folder.chmod(stat.S_IRWXU)
        root.chmod(_PASSAGE if entered else stat.S_IRWXU)


def make(root: Path, order: WorkOrder, record: AttemptRecord, around: AttemptEnvironment) -> bool:
    """Create the folder of an attempt with all its files; return whether it is new."""
    target = root / order.key.path
    if target.exists():
        return False
    draft = root / NEW / _unique()
    draft.parent.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    draft.mkdir()
    try:
        _fill(draft, translated(order, str(root)), record, around)
        if order.account is not None:
            _hand_over(draft, order.account)
        return _move(draft, target, order.account)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, order: WorkOrder, record: AttemptRecord, around: AttemptEnvironment) -> None:
    for name in ("work", "output", "tmp"):
        (draft / name).mkdir()
    for path, source in order.inputs.items():
        if source is None:
            _below(draft / "inputs", path).mkdir(parents=True, exist_ok=True)
    for path, body in order.files:
        file = _below(draft / "files", path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as handle:
            handle.write(body if isinstance(body, bytes) else body.encode("utf-8", "replace"))
        file.chmod(0o755)
    timeout = "-" if order.timeout_s is None else f"{order.timeout_s:.3f}"
    stamps, words, account = int(order.timestamps), len(order.command), "-" if order.account is None else order.account
    head = f"{order.log_bytes} {order.grace_s:.3f} {timeout} {stamps} {words} {account}\n"
    environment = {**around.common, **order.environment, **around.fixed}
    texts = [*order.command, *(f"{name}={value}" for name, value in environment.items())]
    (draft / "launch").touch(0o600)  # environments hold secrets
    (draft / "launch").write_bytes(head.encode() + b"".join(_word(text) + b"\0" for text in texts))
    together = [[key.workflow, key.group, key.task, key.attempt] for key in record.together]
    (draft / "order.json").write_text(json.dumps({"turn": record.turn, "together": together}))
    # The marker of withdrawal exists from the start: a link to it needs no space on the disk.
    (draft / WITHDRAWN).write_text(WITHDRAWN)
    # The space for the shim's results is reserved too: an attempt that begins can also end, even on a full disk.
    for name in ownership.ROOMS:
        ownership.write(ownership.room(str(draft), name), b" " * ownership.ROOM_SIZE)


def _hand_over(draft: Path, account: int) -> None:
    """Give the folders of a task to its account, and to nobody else; all other files stay the service's."""
    for name in ("work", "output", "tmp", "inputs", "files"):
        for path in [draft / name, *(draft / name).rglob("*")] if (draft / name).exists() else ():
            os.chown(path, account, account)
        if name in ("work", "output", "tmp"):
            (draft / name).chmod(stat.S_IRWXU)
    _let_pass(draft, account)


def _let_pass(folder: Path, account: int) -> None:
    os.chown(folder, -1, account)
    folder.chmod(_OWN_PASSAGE)


_ESCAPED = re.compile("[\udc80-\udcff]")


def _word(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if _escaped(text) else "replace")


def _escaped(text: str) -> bool:
    """Return whether a text contains bytes that are not UTF-8, as the environment of this process may."""
    return not text.isascii() and _ESCAPED.search(text) is not None


def _below(folder: Path, path: str) -> Path:
    target = folder / path.lstrip("/")
    if ".." in target.parts or target == folder:
        raise UsageError(f'the path "{path}" leaves the folder of its task', "Example: /tmp/run.sh")
    return target


def _move(draft: Path, target: Path, account: int | None) -> bool:
    while True:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _direct(target):
            raise OSError(errno.ELOOP, f"a link leads out of {target.parent}")
        # The folder of the workflow: all its tasks have one account.
        if account is not None:
            _let_pass(target.parents[2], account)
        else:
            target.parents[2].chmod(stat.S_IRWXU)
        try:
            draft.rename(target)
        except FileNotFoundError:
            if not draft.exists():
                raise
            # The last attempt beside this one was deleted just now, and its empty parent folders with it.
            continue
        except OSError:
            if target.exists():
                return False
            raise
        return True


def _direct(path: Path) -> bool:
    """Return whether neither a path nor its parents are links, which could lead out of the root."""
    return path.parent.resolve() == path.parent and not path.is_symlink()


def _unique() -> str:
    return f"{_me(os.getpid())}-{next(_serial)}"


@cache
def _me(pid: int) -> str:
    return f"{pid}-{ownership.started(pid)}"


def mark_of(root: Path) -> str:
    """Return the unique mark of the processes of this root, created once."""
    if found := known_mark(root):
        return found
    path = root / ".mark"
    draft = root / f".mark.{os.getpid()}"
    draft.write_text(secrets.token_hex(8))
    # Of two processes that create it at the same time, one is first.
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    return path.read_text().strip()


def known_mark(root: Path) -> str:
    """Return the mark of a root, if it already has one."""
    try:
        return (root / ".mark").read_text().strip()
    except FileNotFoundError:
        return ""


def record_of(folder: Path) -> AttemptRecord | None:
    """Return the record of attempts that start together; None when the folder is damaged, as after a power failure."""
    try:
        found = json.loads(regular_files.content(f"{folder}/order.json"))
        return AttemptRecord(tuple(AttemptKey(*each) for each in found["together"]), int(found["turn"]))
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return None


def holder_of(folder: Path) -> ProcessIdentity | str | None:
    """Return the process that claimed an attempt, `withdrawn`, or None when it is unclaimed."""
    words = _words(f"{folder}/claim")
    if words is None:
        return None
    if words[:1] == [WITHDRAWN]:
        return WITHDRAWN
    return ProcessIdentity.of(words[1:]) or ProcessIdentity(0, "", "")


def command_of(folder: Path) -> tuple[ProcessIdentity, float] | None:
    """Return the command's process and its start, once it runs."""
    words = _words(f"{folder}/pid")
    found = ProcessIdentity.of(words or [])
    return (found, float(words[3])) if words and found and len(words) > 3 else None


def end_of(folder: Path) -> AttemptEnded | AttemptLost | None:
    """Return how an attempt ended, as far as that is recorded."""
    with contextlib.suppress(OSError, ValueError):
        first, _, note = regular_files.text(f"{folder}/exit").partition("\n")
        code, at, why = first.split()
        return AttemptEnded(int(code), float(at), why, note.strip(), _since(folder))
    try:
        return AttemptLost(regular_files.text(f"{folder}/lost").strip() or "unknown")
    except OSError:
        return None


def damage_of(folder: Path) -> str:
    """Return what is wrong with the result of an attempt that has no readable one; empty when there is none yet.

    Its processes may still run, because a task can replace the files of its own folder.
    """
    return "its result was recorded, but cannot be read" if os.path.lexists(folder / "exit") else ""


def _since(folder: Path) -> float | None:
    """Return when a command began; its end is known even without this."""
    try:
        found = command_of(folder)
    except (OSError, ValueError):
        return None
    return found[1] if found else None


def withdraw(folder: Path) -> bool:
    """Withdraw an attempt so that it never begins; return whether that was in time, and the folder still exists."""
    try:
        (folder / "claim").hardlink_to(folder / WITHDRAWN)
    except (FileExistsError, FileNotFoundError):
        return False
    return True


def ended_unstarted(folder: Path) -> AttemptEnded | AttemptLost:
    """Record permanently that an attempt was withdrawn."""
    ownership.write_exit(str(folder), 128 + signal.SIGTERM, WITHDRAWN)
    return end_of(folder) or AttemptLost("its folder is gone")


def places_of(root: Path, key: AttemptKey) -> tuple[Path, ...]:
    """Return the paths where the folder of an attempt may be, in the order in which a reader must try them.

    The folder can be archived or brought back between two tries, so the first path comes again at the end.
    """
    return root / key.path, root / ENDED / key.path, root / key.path


def archive(root: Path, workflow: str) -> None:
    """Archive an ended workflow, separate from the others; its data can be read as before."""
    if (root / workflow).is_symlink():
        return
    (root / ENDED).mkdir(exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        (root / workflow).rename(root / ENDED / workflow)
    show_ended(root, [workflow])


def show_ended(root: Path, workflows: Iterable[str] | None = None) -> None:
    """Leave links at the paths of archived workflows, so that users find their data under the same path."""
    for workflow in ended(root) if workflows is None else workflows:
        # Where there is no space for it, the next start creates it. Nothing else depends on it.
        with contextlib.suppress(OSError):
            (root / workflow).symlink_to(Path(ENDED) / workflow)


def _is_shown(root: Path, workflow: str) -> bool:
    """Return whether the link of an archived workflow exists; other links are ignored."""
    try:
        return (root / workflow).readlink() == Path(ENDED) / workflow
    except OSError:
        return False


def _hide(root: Path, workflow: str) -> None:
    if _is_shown(root, workflow):
        (root / workflow).unlink(missing_ok=True)


def restore(root: Path, workflow: str) -> bool:
    """Undo the archiving; return whether there was anything to undo."""
    _hide(root, workflow)
    try:
        (root / ENDED / workflow).rename(root / workflow)
    except FileNotFoundError:
        return False
    return True


def ended(root: Path) -> set[str]:
    """Return the archived workflows."""
    return {path.name for path in (root / ENDED).iterdir()} if (root / ENDED).exists() else set()


def folders(root: Path, workflow: str = "[!.]*") -> Iterator[tuple[AttemptKey, Path]]:
    """Yield every unarchived attempt below a root; other files there are ignored."""
    for path in _at_depth(root, workflow, 3):
        *_, workflow, group, task, attempt = path.split("/")
        if attempt.isdecimal() and str(int(attempt)) == attempt and os.path.exists(f"{path}/order.json"):  # noqa: PTH110
            try:
                yield AttemptKey(workflow, group, task, int(attempt)), Path(path)
            except UsageError:
                continue


def _at_depth(root: Path, workflow: str, depth: int) -> Iterator[str]:
    """Yield the folders `depth` levels below those of workflows, as text: there are thousands, and a `Path` is slow.

    No link is followed, since it could lead out of the root, and archived workflows are links, possibly very many.
    """
    for top in root.glob(workflow):
        if not top.is_symlink():
            yield from _folders_below(str(top), depth)


def _folders_below(folder: str, depth: int) -> Iterator[str]:
    if not depth:
        yield folder
        return
    inside: list[str] = []
    # It may be removed meanwhile.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(folder) as found:
        inside = sorted(each.path for each in found if each.is_dir(follow_symlinks=False))
    for path in inside:
        yield from _folders_below(path, depth - 1)


def remove(root: Path, found: Iterable[Path]) -> None:
    """Move folders out of the way at once; a `TrashCollector` deletes them."""
    bin_ = root / TRASH
    bin_.mkdir(exist_ok=True)
    for folder in filter(_direct, found):
        try:
            folder.rename(bin_ / _unique())
        except FileNotFoundError:
            continue
        for above in takewhile(lambda above: above not in (root, root / ENDED), folder.parents):
            try:
                above.rmdir()
            except OSError:
                break


def remove_workflow(root: Path, workflow: str) -> None:
    """Move all data of a workflow out of the way at once, archived or not; a `TrashCollector` deletes it."""
    _hide(root, workflow)
    remove(root, [root / workflow, root / ENDED / workflow])


def prune(root: Path, workflow: str = "[!.]*") -> None:
    """Remove empty folders of workflows: a process that dies while it makes or removes an attempt leaves some."""
    for depth in (2, 1, 0):
        for folder in _at_depth(root, workflow, depth):
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106 - thousands of times, so without a Path


def trash(root: Path) -> list[Path]:
    """Return what is to be deleted: removed folders, and those of a process that died while creating them."""
    bin_ = root / TRASH
    return [*(bin_.iterdir() if bin_.exists() else ()), *_abandoned(root / NEW)]


def _abandoned(drafts: Path) -> Iterator[Path]:
    """Yield unfinished folders of a process that died while creating them."""
    for draft in drafts.iterdir() if drafts.exists() else ():
        pid, _, rest = draft.name.partition("-")
        if not pid.isdigit() or ownership.started(int(pid)) != rest.partition("-")[0]:
            yield draft


def _words(path: str) -> list[str] | None:
    try:
        return regular_files.text(path).split()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _IRREGULAR:
            return []  # a task has put something else in its place
        raise
