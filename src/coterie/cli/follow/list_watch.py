"""A continuous list of workflows: redrawn on a terminal, elsewhere a line for each change.

The service announces changes; nothing is polled in between.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from coterie.cli.client.client import Client
from coterie.cli.follow.redraw import redrawn
from coterie.cli.output.expected_start import expectations
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import show
from coterie.cli.output.workflows import list_lines
from coterie.errors import UsageError
from coterie.rendering.text import Style

Json = dict[str, Any]
Rows = Sequence[Json]
T = TypeVar("T")

# Simultaneous changes are read together.
_SETTLE_S = 0.1
# How long a changed row is marked.
MARKED_S = 15.0


def watch(client: Client, rows: Callable[[], Rows], output: Output) -> None:
    """Show rows now and whenever they change, until interrupted."""
    if output is Output.YAML:
        raise UsageError("--watch prints tables, names or JSON, not YAML", "Use -o json for one object per line.")
    if sys.stdout.isatty() and output in {Output.TABLE, Output.WIDE}:
        _table(client, rows, wide=output is Output.WIDE)
        return
    said: dict[str, str] = {}
    for found in readings(client, rows):
        show(_news(found, said, output))


def readings(client: Client, read: Callable[[], T]) -> Iterator[T]:
    """Yield a reading of a service, and another one after each change."""
    seen = client.last_event()
    yield read()
    for event in client.stream(seen, None):
        if event["seq"] > seen:
            time.sleep(_SETTLE_S)
            seen = client.with_retries(client.last_event)
            yield client.with_retries(read)


def _news(rows: Rows, said: dict[str, str], output: Output) -> Iterator[str]:
    """Yield a line for each row that left the list, is new in it or has changed; `said` keeps the last line of each."""
    now = {row["id"]: _line(row, output) for row in reversed(rows)}
    for ident in said.keys() - now.keys():
        del said[ident]
        if output is not Output.NAME:
            yield (
                json.dumps({"type": "left", "id": ident}) if output is Output.JSON else safe(f"{ident}  left the list")
            )
    for ident, line in now.items():
        if said.get(ident) != line:
            said[ident] = line
            yield line


def _line(row: Json, output: Output) -> str:
    if output is Output.JSON:
        return json.dumps({"type": "workflow", **row})
    if output is Output.NAME:
        return safe(row["id"])
    why = f"  {row['waiting']['reason']}" if row["waiting"] else ""
    return safe(f"{row['id']}  {row['status']}{why}")


def _table(client: Client, rows: Callable[[], Rows], *, wide: bool) -> None:
    latest: Rows | None = None
    expected: dict[str, str] | None = None
    changed: dict[str, tuple[str, float]] = {}

    def lines(style: Style, _: int) -> Iterator[str]:
        if latest is not None:
            now = time.monotonic()
            marks = {ident: mark for ident, (mark, at) in changed.items() if now - at < MARKED_S}
            yield from list_lines(latest, style, time.time(), expected=expected, marks=marks)

    with redrawn(lines) as draw:
        for found in readings(client, rows):
            if latest is not None:
                changed = {**changed, **_marked(latest, found)}
            if wide:
                expected = client.with_retries(lambda found=found: expectations(client, found, time.time()))  # type: ignore[misc]
            latest = found
            draw()


def _marked(before: Rows, after: Rows) -> dict[str, tuple[str, float]]:
    """Return the marks of the rows that are new or have changed."""
    known, now = {row["id"]: row for row in before}, time.monotonic()
    return {row["id"]: ("~" if row["id"] in known else "+", now) for row in after if known.get(row["id"]) != row}
