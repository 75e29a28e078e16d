"""The progress of a workflow: a table that is redrawn on a terminal, lines with their time anywhere else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import typer

from coterie.cli.follow.redraw import redrawn
from coterie.cli.output.formats import safe
from coterie.cli.output.times import clock
from coterie.cli.output.workflows import workflow_lines
from coterie.rendering.text import Style

Json = dict[str, Any]

_REDRAWS_PER_SECOND = 5
_NEVER_SHOWN = frozenset({"Cleaned"})


class EventSource(Protocol):
    """The source of a workflow's views and events."""

    def view(self, ident: str, /) -> Json:
        """Return the current view of a workflow."""

    def news(self, ident: str, /) -> Iterator[list[Json]]:
        """Yield events as they happen, and an empty list at intervals, until a finished workflow has no more."""


def can_redraw() -> bool:
    """Return whether standard error is a terminal on which a table can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def follow(
    told: EventSource,
    ident: str,
    *,
    quiet: bool = False,
    plain: bool = False,
    until: Callable[[Json], bool] | None = None,
) -> Json:
    """Show the progress of a workflow until it is finished, or a view satisfies a condition; return the last view.

    `quiet` shows nothing, `plain` shows lines even on a terminal.
    """
    view = told.view(ident)
    with _shown(view, quiet=quiet, plain=plain) as show:
        for events in told.news(ident):
            view = told.view(ident)
            show(view, events)
            if until is not None and until(view):
                return view
    return told.view(ident)


Show = Callable[[Json, Iterable[Json]], None]


@contextmanager
def _shown(first: Json, *, quiet: bool, plain: bool) -> Iterator[Show]:
    if quiet:
        yield lambda _view, _events: None
    elif can_redraw() and not plain:
        with _table(first) as show:
            yield show
    else:
        yield _lines


def _lines(_: Json, events: Iterable[Json]) -> None:
    for one in events:
        if one["kind"] not in _NEVER_SHOWN:
            typer.echo(event_line(one), err=True)


def event_line(one: Json) -> str:
    """Return an event as one line."""
    return safe(f"{clock(one['at'])}  {one['message']}").replace("\n", " ")


@contextmanager
def _table(first: Json) -> Iterator[Show]:
    latest = first

    def lines(style: Style, room: int) -> Iterator[str]:
        yield from workflow_lines(latest, style, time.time(), most=room)

    def show(view: Json, _: Iterable[Json]) -> None:
        nonlocal latest
        latest = view

    with redrawn(lines, stderr=True, per_second=_REDRAWS_PER_SECOND):
        yield show
