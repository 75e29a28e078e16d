"""Work orders and the statuses of their attempts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coterie.backends.base.settings import DEFAULT_GRACE_S, DEFAULT_LOG
from coterie.errors import UsageError
from coterie.frontends.workflow.tokens import OUTPUT

LEAST_LOG = 4096
# Linux accepts no longer text as one word of a command, or as one variable with its name; it ends with a zero byte.
LONGEST_WORD = (128 << 10) - 1

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True, order=True)
class AttemptKey:
    """One attempt at one task; its parts are also folder names, so none may lead elsewhere."""

    workflow: str
    group: str
    task: str
    attempt: int = 1

    def __post_init__(self) -> None:
        for part in (self.workflow, self.group, self.task):
            if not _PART.fullmatch(part):
                hint = 'At most 200 letters, digits, "-", "_" and ".", beginning with a letter or digit.'
                raise UsageError(f'"{part[:250]}" cannot be part of the name of a folder', hint)
        if self.attempt < 0:
            raise UsageError(f"attempt {self.attempt} is negative", "Attempts count up from 1.")

    @property
    def path(self) -> str:
        """The folder of the attempt, below the root."""
        return f"{self.workflow}/{self.group}/{self.task}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """One command to run, with all tokens replaced.

    Paths are those of a container. `files` are stored below the attempt's folder whatever their paths; `inputs` are the
    outputs of other attempts, or empty folders where there is none; `mounts` are paths of this machine under another
    name. Such a path in the command, the environment or a text file is replaced by the real one. `account` is the user
    id that the command runs under; None for that of this process.
    """

    key: AttemptKey
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: tuple[tuple[str, str | bytes], ...] = ()
    inputs: Mapping[str, AttemptKey | None] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    grace_s: float = DEFAULT_GRACE_S
    log_bytes: int = DEFAULT_LOG
    timestamps: bool = False
    account: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptStarting:
    """Accepted; it waits for capacity, or its process is about to begin."""


@dataclass(frozen=True, slots=True)
class AttemptRunning:
    """The command has been running since a time of the epoch."""

    pid: int
    since: float


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The command and all its descendants are gone.

    `why` is exited, stopped, timeout, or withdrawn when it was stopped before it began. `note` states further errors,
    such as a log that could not be written. It ran from `since`, where that is known, until `at`.
    """

    exit_code: int
    at: float
    why: str = "exited"
    note: str = ""
    since: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """Its end is unknown; nothing of it runs any more."""

    why: str


@dataclass(frozen=True, slots=True)
class AttemptAbsent:
    """Never started, or deleted."""


Status = AttemptStarting | AttemptRunning | AttemptEnded | AttemptLost | AttemptAbsent


def order_faults(order: WorkOrder) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Yield the values that no process can be given: a message, a hint, and the path in the task."""
    words: list[tuple[str, tuple[str | int, ...]]]
    words = [(word, ("command", index)) for index, word in enumerate(order.command)]
    words += [(value, ("environment", name)) for name, value in order.environment.items()]
    for text, where in words:
        if "\0" in text:
            yield f"{where[0]} contains a zero byte", "Programs cannot receive one.", where
        size = _size(text) + (_size(f"{where[1]}=") if where[0] == "environment" else 0)
        if size > LONGEST_WORD:
            what = f"the variable {where[1]}" if where[0] == "environment" else "an argument of the command"
            yield (
                f"{what} has {size:,} bytes, and a program can receive at most {LONGEST_WORD:,} in one",
                "Put a long text into a file (files: [{path: /tmp/text, contents: …}]) and let the command read it.",
                where,
            )
    if not order.command:
        yield "there is no command", "Name the program to run.", ("command",)
    if order.log_bytes < LEAST_LOG:
        yield f"a log of {order.log_bytes} bytes is too small", f"At least {LEAST_LOG} are allowed.", ("name",)
    yield from _path_faults([path for path, _ in order.files], [OUTPUT, *order.inputs])
    for path in order.inputs:
        if not _straight(path):
            yield (
                f'the path "{path}" of an input is not a plain absolute path',
                "Example: /coterie/input/0",
                ("inputs",),
            )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _path_faults(files: list[str], folders: list[str]) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    taken: dict[str, str] = dict.fromkeys(folders, "a folder of the task")
    parents = {above: path for path in files for above in _above(path)}
    for index, path in enumerate(files):
        where = ("files", index, "path")
        if not _straight(path):
            yield f'the path "{path}" of a file is not a plain absolute path', "Example: /tmp/run.sh", where
        elif any(len(part.encode("utf-8", "replace")) > 255 for part in path.split("/")):
            yield f'the path "{path}" has a name of more than 255 bytes', "Choose a shorter one.", where
        elif path in taken:
            yield f'the path "{path}" is also that of {taken[path]}', "Choose another path for one of them.", where
        elif path in parents:
            hint = "Choose another path for one of them."
            yield f'the path "{path}" is used both as a file and as a folder of the file "{parents[path]}"', hint, where
        taken.setdefault(path, "another file")


def _straight(path: str) -> bool:
    return path.startswith("/") and posixpath.normpath(path) == path and "\0" not in path and len(path) > 1


def _above(path: str) -> Iterator[str]:
    while (path := posixpath.dirname(path)) not in ("/", ""):
        yield path
