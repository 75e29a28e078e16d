"""Following a workflow: a table that redraws itself on a terminal, lines with their time anywhere else."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import typer

from coterie.cli.output import safe
from coterie.cli.service.times import clock
from coterie.cli.service.views import workflow_lines
from coterie.rendering.text import ASCII, BLOCKS, Style

Json = dict[str, Any]

_REDRAWS_PER_SECOND = 5
_NEVER_SHOWN = frozenset({"Cleaned"})


class Told(Protocol):
    """Where a workflow is looked up, and where its events come from."""

    def workflow(self, ident: str, /) -> Json:
        """Return a workflow as it is now."""

    def news(self, ident: str, /) -> Iterator[list[Json]]:
        """Yield events as they happen, and an empty list now and then, until all of a finished workflow are told."""


def fancy_talk() -> bool:
    """Tell whether standard error is a terminal on which a table can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def follow(
    told: Told, ident: str, *, quiet: bool = False, plain: bool = False, until: Callable[[Json], bool] | None = None
) -> Json:
    """Show what happens to a workflow until it is finished, or until a view is as wanted; return the last view.

    `quiet` shows nothing, `plain` lines even on a terminal.
    """
    view = told.workflow(ident)
    with _shown(view, quiet=quiet, plain=plain) as show:
        for events in told.news(ident):
            view = told.workflow(ident)
            show(view, events)
            if until is not None and until(view):
                return view
    return told.workflow(ident)


Show = Callable[[Json, Iterable[Json]], None]


@contextmanager
def _shown(first: Json, *, quiet: bool, plain: bool) -> Iterator[Show]:
    if quiet:
        yield lambda _view, _events: None
    elif fancy_talk() and not plain:
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
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    colour = not os.environ.get("NO_COLOR")
    symbols = ASCII if console.encoding.lower() not in {"utf-8", "utf8"} else BLOCKS
    lock = threading.Lock()
    latest = first

    def drawn() -> Text:
        with lock:
            view = latest
        # One column stays empty: some terminals wrap a line that fills the last one.
        style = Style(max(20, console.width - 1), symbols, colour)
        lines = workflow_lines(view, style, time.time(), most=max(8, console.height - 2))
        return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop")

    def show(view: Json, _: Iterable[Json]) -> None:
        nonlocal latest
        with lock:
            latest = view

    with Live(get_renderable=drawn, console=console, refresh_per_second=_REDRAWS_PER_SECOND):
        yield show
