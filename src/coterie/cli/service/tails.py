"""What tasks have written, beside everything else that is shown of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.output import safe
from coterie.cli.screen import show
from coterie.rendering.text import count

if TYPE_CHECKING:
    # One that follows what a service runs has no use for what this loads.
    from coterie.service.service import Service

Json = dict[str, Any]

_PIECE = 1 << 16
_TAIL_LINES = 12
_TAIL_TASKS = 3


class Printer:
    """Prints what the tasks of a workflow write, a line at a time, each with the name of its task before it."""

    def __init__(self, service: Service, ident: str) -> None:
        self._service, self._ident = service, ident
        self._seen: dict[tuple[str, int], tuple[int, bytes]] = {}

    def print_new(self) -> None:
        """Print what was written since the last time."""
        view = self._service.workflow(self._ident)
        tasks = [task for group in view["groups"] for task in group["tasks"]]
        width = max(len(task["name"]) for task in tasks)
        for task in tasks:
            numbers = [*(old["attempt"] for old in task["past"]), task["attempt"]]
            for attempt in filter(None, numbers):
                over = attempt != task["attempt"] or view["finished"]
                show(f"{task['name']:<{width}} | {line}" for line in self._lines(task["name"], attempt, over=over))

    def _lines(self, task: str, attempt: int, *, over: bool) -> Iterator[str]:
        offset, rest = self._seen.get((task, attempt), (0, b""))
        while piece := self._service.log(self._ident, task, attempt, offset, _PIECE):
            offset += len(piece)
            *whole, rest = (rest + piece).split(b"\n")
            yield from map(_text, whole)
        if over and rest:
            yield _text(rest)
            rest = b""
        self._seen[task, attempt] = offset, rest


def failed_tasks(view: Json) -> list[Json]:
    """Return the tasks that failed by themselves, in the order of the workflow."""
    return [
        task
        for group in view["groups"]
        for task in group["tasks"]
        if task["exit_code"] or _failed_itself(task["status"])
    ]


def pieces_of(service: Service, ident: str, task: str) -> Iterator[bytes]:
    """Yield what a task has written, piece by piece."""
    offset = 0
    while piece := service.log(ident, task, None, offset, _PIECE):
        offset += len(piece)
        yield piece


def print_tails(view: Json, pieces: Callable[[str], Iterable[bytes]]) -> None:
    """Say on standard error how the tasks that failed ended, with the last lines that they wrote."""
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
