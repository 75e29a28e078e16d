"""The output of tasks, shown beside the progress of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.output.formats import safe
from coterie.cli.output.screen import show
from coterie.rendering.text import count

if TYPE_CHECKING:
    # A follower of a service does not need these imports.
    from coterie.service.service import Service

Json = dict[str, Any]

_PIECE = 1 << 16
_TAIL_LINES = 12
_TAIL_TASKS = 3


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a task's output."""

    task: str
    attempt: int
    text: str


class LogReader:
    """New lines of all tasks of a workflow, from any source of views and logs.

    `read` returns a part of a log from a byte on, `start` the first byte that counts. Without `past`, only the latest
    attempt of a task counts.
    """

    def __init__(
        self,
        look: Callable[[], Json],
        read: Callable[[str, int, int], bytes],
        start: Callable[[str, int], int] = lambda _task, _attempt: 0,
        *,
        past: bool = False,
    ) -> None:
        self._look, self._read, self._start, self._past = look, read, start, past
        self._seen: dict[tuple[str, int], tuple[int, bytes]] = {}
        self._over: set[tuple[str, int]] = set()
        self.view = look()

    def new(self) -> Iterator[LogLine]:
        """Yield the output since the last call; `view` is the workflow just before."""
        self.view = self._look()
        for task in tasks_of(self.view):
            numbers = [old["attempt"] for old in task["past"]] if self._past else []
            for attempt in filter(None, (*numbers, task["attempt"])):
                over = attempt != task["attempt"] or self.view["finished"]
                yield from self._lines(task["name"], attempt, over=over)

    def _lines(self, task: str, attempt: int, *, over: bool) -> Iterator[LogLine]:
        key = task, attempt
        if key in self._over:
            return
        offset, rest = self._seen.get(key) or (self._start(task, attempt), b"")
        while piece := self._read(task, attempt, offset):
            offset += len(piece)
            *whole, rest = (rest + piece).split(b"\n")
            yield from (LogLine(task, attempt, _text(line)) for line in whole)
        if over and rest:
            yield LogLine(task, attempt, _text(rest))
            rest = b""
        self._seen[key] = offset, rest
        if over:
            self._over.add(key)


class Printer:
    """The printer of a workflow's task output, a line at a time, each after the name of its task."""

    def __init__(self, service: Service, ident: str) -> None:
        read = partial(_read, service, ident)
        self._reader = LogReader(lambda: service.workflow(ident), read, past=True)

    def print_new(self) -> None:
        """Print the output since the last call."""
        width = name_width(self._reader.view)
        show(prefixed(line, width) for line in self._reader.new())


def _read(service: Service, ident: str, task: str, attempt: int, offset: int) -> bytes:
    return service.log(ident, task, attempt, offset, _PIECE)


def prefixed(line: LogLine, width: int) -> str:
    """Return a line after the name of its task."""
    return f"{line.task:<{width}} | {line.text}"


def name_width(view: Json) -> int:
    """Return the length of the longest task name."""
    return max(len(task["name"]) for task in tasks_of(view))


def tasks_of(view: Json) -> list[Json]:
    """Return all tasks of a workflow, in its order."""
    return [task for group in view["groups"] for task in group["tasks"]]


def failed_tasks(view: Json) -> list[Json]:
    """Return the tasks that failed by themselves, in the order of the workflow."""
    return [task for task in tasks_of(view) if task["exit_code"] or _failed_itself(task["status"])]


def pieces_of(service: Service, ident: str, task: str) -> Iterator[bytes]:
    """Yield the output of a task, part by part."""
    offset = 0
    while piece := service.log(ident, task, None, offset, _PIECE):
        offset += len(piece)
        yield piece


def print_last_lines(view: Json, pieces: Callable[[str], Iterable[bytes]]) -> None:
    """Print on standard error how the failed tasks ended, with the last lines of their output."""
    failed = failed_tasks(view)
    for task in failed[:_TAIL_TASKS]:
        code = "" if task["exit_code"] is None else f", exit code {task['exit_code']}"
        where = f" on {task['node']}" if task["node"] else ""
        lines = _tail(pieces(task["name"]))
        typer.echo(safe(f"{task['name']}: {task['status']}{where}{code}{':' if lines else ''}"), err=True)
        for line in lines:
            typer.echo(f"  {line}", err=True)
    if len(failed) > _TAIL_TASKS:
        typer.echo(f"and {count(len(failed) - _TAIL_TASKS, 'more task')}", err=True)


def _failed_itself(status: str) -> bool:
    return status.startswith("FAILED") and status not in {"FAILED_CANCELED", "FAILED_UPSTREAM"}


def _tail(pieces: Iterable[bytes]) -> list[str]:
    kept = b""
    for piece in pieces:
        kept = (kept + piece)[-_PIECE:]
    return [_text(line) for line in kept.rstrip(b"\n").split(b"\n")[-_TAIL_LINES:]] if kept.strip() else []


def _text(line: bytes) -> str:
    return safe(line.decode("utf-8", "replace").replace("\t", "    ").rstrip("\r"))
