"""The processes below this one, orphans included, as the kernel reports them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

_SUBREAPER = 36
# The numbers of a process that is in a namespace of its own: there are several.
_NESTED = re.compile(r"^NSpid:\t\d+\t\d", re.MULTILINE)
# A process that was killed may take a moment to go, and may have started another one before.
_ROUNDS, _PAUSE_S = 50, 0.02
# Python keeps one such process for all that share memory or semaphores, and the documents one that runs their commands.
# A service starts work processes when it needs them, and keeps them as long as the tests that share it.
_KEPT = (
    b"multiprocessing.resource_tracker",
    b"multiprocessing.forkserver",
    b"tests.examples.fork_server",
    b"coterie.service.work_process",
)


class Process(NamedTuple):
    """A process by its number and by the time at which it began, which tells it from a later one of that number."""

    pid: int
    began: str


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends, so that none is lost from sight."""
    call = ctypes.CDLL(None, use_errno=True).prctl
    if call(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    signal.signal(signal.SIGCHLD, _release_nested)


def descendants(roots: Iterable[int] | None = None) -> set[Process]:
    """Return the processes below some, by default below this one; those that have ended do not count."""
    if roots is None and not _has_children_of_tests():
        return set()
    children = _children()
    found: set[Process] = set()
    new = [os.getpid()] if roots is None else list(roots)
    while new:
        below = [each for pid in new for each in children.pop(pid, ())]
        found.update(each.process for each in below if not each.ended)
        new = [each.process.pid for each in below]
    return {each for each in found if not any(kept in _command(each.pid) for kept in _KEPT)}


def release_ended(since: set[Process]) -> None:
    """Let the kernel forget children that have ended, as it does with orphans, but those that were there before."""
    for pid in _own_children(os.getpid()) if _has_children() else ():
        found = _stat(pid)
        if found and found.ended and found.process not in since:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def kill(processes: Collection[Process]) -> None:
    """Kill processes and all that is below them, and return when they are gone, or do not go."""
    wanted = set(processes)
    for _ in range(_ROUNDS):
        wanted |= descendants(each.pid for each in wanted)
        wanted &= descendants()
        if not wanted:
            return
        for each in wanted:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each.pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def described(processes: Iterable[Process]) -> str:
    """Return processes as a person recognises them: by their numbers and commands."""
    return ", ".join(
        f"{each.pid} ({_command(each.pid).strip(bytes(1)).replace(bytes(1), b' ').decode(errors='replace')[:200]})"
        for each in sorted(processes)
    )


def _release_nested(_: int, __: FrameType | None) -> None:
    """Let the kernel forget orphans of other process namespaces at once: a namespace does not end before all are gone.

    No process starts another one directly in such a namespace, so they are nobody's but ours.
    """
    for pid in _own_children(os.getpid()):
        with suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
            if "\nState:\tZ" in status and _NESTED.search(status):
                os.waitpid(pid, os.WNOHANG)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _has_children_of_tests() -> bool:
    """Return whether there is a child other than the kept ones that have no children: most tests start no process."""
    return _has_children() and any(
        _own_children(pid) or not any(kept in _command(pid) for kept in _KEPT) for pid in _own_children(os.getpid())
    )


def _own_children(pid: int) -> list[int]:
    """Return the children of one process; one may be missing while another one ends."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names alone, after every test
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


class _Found(NamedTuple):
    process: Process
    parent: int
    ended: bool


def _stat(pid: int) -> _Found | None:
    with suppress(OSError):
        # The name of a program may have brackets and need not be text.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
        return _Found(Process(pid, fields[19]), int(fields[1]), fields[0] in "ZX")
    return None


def _children() -> dict[int, list[_Found]]:
    """Return the children of every process of the machine."""
    found: dict[int, list[_Found]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone, after every test
        if name.isdigit() and (one := _stat(int(name))):
            found.setdefault(one.parent, []).append(one)
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
