"""`coterie list`: workflows, newest first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.list import ListOptions
from coterie.cli.follow.list_watch import watch as watching
from coterie.cli.inputs.labels import parse_labels
from coterie.cli.output.expected_start import expectations
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import screen, show_as
from coterie.cli.output.times import parse_span
from coterie.cli.output.workflows import list_lines
from coterie.errors import NotFound, did_you_mean

Json = dict[str, Any]

_PAGE = 500


def run(client: Client, options: ListOptions) -> None:
    """Print workflows, newest first; with --watch, again whenever one changes."""
    output, watch = options.output, options.watch
    params = _params(options, time.time())
    if watch and options.pool is not None:
        _check_pool(client, options.pool)
    if watch:
        watching(client, lambda: _rows(client, params, options.limit)[0], output)
        return
    rows, more = _rows(client, params, options.limit)
    if not rows and options.pool is not None:
        _check_pool(client, options.pool)
    now = time.time()
    names = [row["id"] for row in rows]
    show_as(output, rows, names, lambda: _lines(client, rows, now, wide=output is Output.WIDE))
    if more:
        typer.echo(f"there are more than {options.limit}; --limit shows more of them", err=True)


def _params(options: ListOptions, now: float) -> Json:
    """Return the filter as API parameters."""
    return {
        "status": [status.upper() for status in options.statuses],
        "pool": options.pool,
        "owner": options.owner,
        "name": options.name or None,
        "label": [f"{key}={value}" for key, value in parse_labels(options.labels).items()],
        "submitted_after": None if options.since is None else now - parse_span(options.since, "--since"),
        "finished": False if options.active else None,
    }


def _lines(client: Client, rows: Sequence[Json], now: float, *, wide: bool) -> Iterable[str]:
    expected = expectations(client, rows, now) if wide else None
    return list_lines(rows, screen(), now, expected=expected)


def _check_pool(client: Client, name: str) -> None:
    """Raise `NotFound` for an unknown pool, which an empty list would not show."""
    known = [pool["name"] for pool in client.pools()]
    if name not in known:
        listed = f"Pools are: {', '.join(known)}." if known else "There are none."
        raise NotFound(f'there is no pool "{name}"', f"{did_you_mean(name, known)} {listed}".strip())


def _rows(client: Client, params: Json, limit: int) -> tuple[list[Json], bool]:
    found: list[Json] = []
    after = None
    while len(found) < limit:
        page = client.workflows({**params, "after": after, "limit": min(_PAGE, limit - len(found))})
        found += page["items"]
        after = page["next"]
        if after is None:
            return found, False
    return found, True
