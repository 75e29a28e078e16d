"""The rules for single values in a workflow file; each yields every fault, with the allowed values."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from coterie.document.schema import Wrong, said, wrong
from coterie.document.yaml_events import WrittenInt
from coterie.errors import nearest
from coterie.topology.levels import is_label_value, label_fault

if TYPE_CHECKING:
    from coterie.frontends.workflow.model import ExitActions, TaskFile

MOST_LABELS = 16
RESERVED = "osmo-ctrl"
# A path becomes folders on a disk, below others whose names are long too; Linux has 4,096 bytes for all of them.
LONGEST_PATH = 1024
DEEPEST_PATH = 32
LONGEST_STEP = 255

_NAME = re.compile(r"[a-zA-Z]([a-zA-Z0-9_-]*[a-zA-Z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")


def normalized_name(text: str) -> str:
    """Return a name in the form in which names are compared: Kubernetes has neither upper case nor underscores."""
    return text.lower().replace("_", "-")


def version(value: object) -> int:
    """Return the version of the grammar, which must be the number 2."""
    if type(value) in (int, WrittenInt) and value == 2:
        return 2
    hint = "Remove the quotes: version: 2" if value == "2" else "Write version: 2, or leave the line out."
    if type(value) in (int, WrittenInt):
        raise wrong(Wrong(f"version {said(value)} is not supported", hint))
    raise wrong(Wrong(f"version must be the number 2, not {said(value)}", hint))


def name(value: str) -> Iterator[Wrong]:
    """Check the name of a workflow, group or task."""
    if not _NAME.fullmatch(value):
        yield Wrong(
            f"{{field}} {said(value)} is not allowed",
            'A name starts with a letter, ends with a letter or digit, and has only letters, digits, "-" and "_".',
        )
    elif len(value) > 63:
        yield Wrong(f"{{field}} {said(value)} has {len(value)} characters", "At most 63 are allowed.")
    elif normalized_name(value) == RESERVED:
        yield Wrong(f"the name {said(value)} is reserved", "Choose another name.")


def labels(found: Mapping[str, str]) -> Iterator[Wrong]:
    """Check a workflow's labels by Kubernetes' rules and ours."""
    if len(found) > MOST_LABELS:
        yield Wrong(f"a workflow has at most {MOST_LABELS} labels, not {len(found)}", "Remove some.")
    for key, value in found.items():
        if problem := label_fault(key):
            yield Wrong(f"{said(key)} is not a label: {problem}", "Example: team: research", (key,))
        elif key.startswith(("coterie.dev/", "osmo.")):
            yield Wrong(f"the label {said(key)} is reserved for the system", "Choose another key.", (key,))
        elif not value:
            yield Wrong(f"the label {said(key)} has no value", 'Give it one, such as "true", or remove it.', (key,))
        elif not is_label_value(value):
            yield Wrong(
                f"{said(value)} cannot be the value of label {said(key)}",
                'At most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit.',
                (key,),
            )


def environment(found: Mapping[str, str]) -> Iterator[Wrong]:
    """Check the names of environment variables."""
    for key in found:
        if not _VARIABLE.fullmatch(key):
            yield Wrong(
                f"{said(key)} cannot be the name of an environment variable",
                'Names have letters, digits, "_", "-" and ".", and do not begin with a digit.',
                (key,),
            )


def mount(value: str) -> Iterator[Wrong]:
    """Check one volume mount, `/a` or `/a:/b`."""
    if not all(part.startswith("/") for part in value.split(":")) or value.count(":") > 1:
        yield Wrong(
            f"{{field}} must be absolute paths, not {said(value)}", "Write /PATH or /NODE-PATH:/CONTAINER-PATH."
        )
    for part in value.split(":"):
        yield from _bounded("{field}", part, ())


def file(found: TaskFile) -> Iterator[Wrong]:
    """Check one file: its path and its source."""
    path = container_path(found.path)
    if not found.path.startswith("/") or found.path.endswith("/") or path == "/":
        yield Wrong(f"path {said(found.path)} is not an absolute path of a file", "Example: /tmp/run.sh", ("path",))
    elif f"{path}/".startswith("/osmo/"):
        yield Wrong(f"path {said(found.path)} is in /osmo, which is reserved", "Choose another folder.", ("path",))
    yield from _bounded("path", found.path, ("path",))
    if found.contents is not None and found.localpath is not None:
        yield Wrong(f"file {said(found.path)} has both contents and localpath", "Keep one of the two.", ("localpath",))
    if found.contents is None and found.localpath is None:
        hint = "Give it one of the two."
        yield Wrong(f"file {said(found.path)} has neither contents nor localpath", hint, ("contents",))
    if found.localpath is not None:
        yield from _local(found.localpath)
    if found.base64 and found.contents is not None and not _is_base64(found.contents):
        yield Wrong(
            f"the contents of {said(found.path)} are not Base64",
            "Remove base64: true if they are plain text.",
            ("contents",),
        )


def _bounded(field: str, path: str, where: tuple[str, ...]) -> Iterator[Wrong]:
    """Check the length and the depth of a path."""
    size, depth = len(path.encode("utf-8", "replace")), path.strip("/").count("/")
    if size > LONGEST_PATH:
        hint = f"At most {LONGEST_PATH:,} are allowed. Choose shorter names."
        yield Wrong(f"{field} {said(path)} has {size:,} bytes", hint, where)
    elif depth > DEEPEST_PATH:
        hint = f"At most {DEEPEST_PATH} folders are allowed."
        yield Wrong(f"{field} {said(path)} is {depth:,} folders deep", hint, where)
    elif any(len(part.encode("utf-8", "replace")) > LONGEST_STEP for part in path.split("/")):
        hint = f"At most {LONGEST_STEP} are allowed. Choose a shorter one."
        yield Wrong(f"{field} {said(path)} has a name of more than {LONGEST_STEP} bytes", hint, where)


def container_path(path: str) -> str:
    """Return the path of a file without detours."""
    # POSIX leaves open what two leading slashes mean; in a container they mean one.
    return f"/{posixpath.normpath(path).lstrip('/')}"


def _local(path: str) -> Iterator[Wrong]:
    yield from _bounded("localpath", path, ("localpath",))
    bare = posixpath.normpath(path)
    if bare.startswith("/") or bare.split("/")[0] == "..":
        yield Wrong(
            f"localpath {said(path)} leaves the folder of the workflow file",
            "Give a relative path to a file in the folder of the workflow file or below it.",
            ("localpath",),
        )
    elif path.endswith("/") or bare == ".":
        yield Wrong(f"localpath {said(path)} is a folder", "Name a single file.", ("localpath",))


def _is_base64(contents: str) -> bool:
    try:
        base64.b64decode("".join(contents.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def exit_codes(value: str) -> Iterator[Wrong]:
    """Check a list of exit codes such as `0-10,16`."""
    for part in value.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            yield Wrong(
                f"{{field}} must be exit codes such as 0-10,16, not {said(value)}", "Separate them with commas."
            )
            continue
        first, last = int(found[1]), int(found[2] or found[1])
        if max(first, last) > 255:
            yield Wrong(f"{{field}} names exit code {max(first, last)}", "Exit codes go from 0 to 255.")
        elif last < first:
            yield Wrong(f"{{field}} has the range {first}-{last}, which is backwards", f"Write {last}-{first}.")


def codes(value: str) -> Iterator[int]:
    """Yield each exit code that a checked list names."""
    for part in value.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def exit_actions(found: ExitActions) -> Iterator[Wrong]:
    """Check that no exit code has two meanings."""
    meanings: dict[int, str] = {}
    for action, listed in by_action(found).items():
        for code in codes(listed):
            if code in meanings:
                other = meanings[code]
                both = f"{action} twice" if other == action else f"both {other} and {action}"
                yield Wrong(f"exit code {code} is listed for {both}", "Each code has one meaning.", (action,))
                break
            meanings[code] = action


def by_action(found: ExitActions) -> Mapping[str, str]:
    """Return the exit codes of each action that has some, by the name users write."""
    pairs = {"COMPLETE": found.complete, "FAIL": found.fail, "RESCHEDULE": found.reschedule}
    return {action: listed for action, listed in pairs.items() if listed is not None}


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return sentences that list the known names, as far as a line allows, and suggest the one that was meant."""
    # A comparison with very many names takes too long.
    guess = nearest(word, known) if len(known) <= 1000 else None
    listed = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
    return (f"Known: {listed}." if known else "None is defined.") + (f' Did you mean "{guess}"?' if guess else "")
