"""`coterie top` of a service: the usage per pool and domain, once or continuously."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.top import TopOptions
from coterie.cli.follow.list_watch import MARKED_S, readings
from coterie.cli.follow.redraw import redrawn
from coterie.cli.handlers.remote.pool_map import scene_of
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.map import View
from coterie.cli.output.screen import screen, show, show_as
from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.rendering.scene import Area, MapScene
from coterie.rendering.text import Style
from coterie.rendering.usage import Usage, UsageRow, Use, place_json, rows_of, usage_json, usage_of
from coterie.rendering.usage_table import TOTAL, usage_lines


def run(client: Client, look: TopOptions) -> None:
    """Print the usage; with --watch, again whenever it changes."""
    if not look.watch:
        print_usage(_read(client, look), look)
        return
    if look.output is Output.YAML:
        raise UsageError("--watch prints tables, names or JSON, not YAML", "Use -o json for one object per line.")
    if sys.stdout.isatty() and look.output in {Output.TABLE, Output.WIDE}:
        _redraw(client, look)
        return
    said: dict[str, str] = {}
    for usage in readings(client, lambda: _read(client, look)):
        show(_news(usage, look, said))


def print_usage(usage: Usage, look: TopOptions) -> None:
    """Print the usage in the requested format."""
    check_level(usage, look.level)
    names = [row.name for row in _rows(usage, look)]
    data = usage_json(usage, look.level)
    show_as(
        look.output,
        data,
        names,
        lambda: usage_lines(usage, screen(), level=look.level, wide=look.output is Output.WIDE),
    )


def check_level(usage: Usage, level: str | None) -> None:
    """Raise `UsageError` for a level that no pool has."""
    known = list(dict.fromkeys(name for pool in usage.pools for name in pool.scene.levels))
    if level is not None and level not in known:
        listed = f"Levels are: {', '.join(known)}." if known else "There are no levels."
        raise UsageError(f'there is no level "{level}"', f"{did_you_mean(level, known)} {listed}".strip())


def _read(client: Client, look: TopOptions) -> Usage:
    pools = client.pools()
    names = [pool["name"] for pool in pools]
    if look.pool is not None and look.pool not in names:
        listed = f"Pools are: {', '.join(names)}." if names else "There are none."
        raise NotFound(f'there is no pool "{look.pool}"', f"{did_you_mean(look.pool, names)} {listed}".strip())
    # All pools are read, even where one is requested: others may share some of its nodes.
    usage = usage_of([(_scene(client, pool["name"], pool["nodes"]), pool) for pool in pools])
    if look.pool is None:
        return usage
    one = next(pool for pool in usage.pools if pool.name == look.pool)
    alone = usage_of([(one.scene, one.about)])
    return Usage((one,), alone.total, alone.holders)


def _scene(client: Client, pool: str, nodes: int) -> MapScene:
    """Return the scene of a pool; an empty one where its backend reports no nodes."""
    return scene_of(client.map(pool), View(None, None, free=False)) if nodes else MapScene((), Area(), pool)


def _rows(usage: Usage, look: TopOptions) -> Iterator[UsageRow]:
    for pool in usage.pools:
        yield from rows_of(pool, look.level)


def _news(usage: Usage, look: TopOptions, said: dict[str, str]) -> Iterator[str]:
    """Yield a line for each row that is new, has changed or is gone; `said` keeps the last line of each."""
    check_level(usage, look.level)
    lines = {row.name: _line(row, look.output) for row in _rows(usage, look)}
    lines[TOTAL] = _line(UsageRow("total", (), "", usage.total), look.output, kind="total")
    for name in sorted(said.keys() - lines.keys()):
        del said[name]
        if look.output is not Output.NAME:
            gone = json.dumps({"type": "gone", "name": name})
            yield gone if look.output is Output.JSON else safe(f"{name}  is gone")
    for name, line in lines.items():
        if said.get(name) != line:
            said[name] = line
            yield line


def _line(row: UsageRow, output: Output, kind: str = "") -> str:
    if output is Output.NAME:
        return safe(row.name)
    if output is Output.JSON:
        place = {} if kind else {"pool": row.pool, "level": row.level or None, "path": list(row.path)}
        return json.dumps(
            {"type": kind or ("domain" if row.level else "pool"), "name": row.name, **place, **place_json(row)}
        )
    gpus, nodes = row.use.gpus, row.use.nodes
    states = f"{nodes.allocated}/{nodes.idle}/{nodes.other}/{nodes.total}"
    return safe(f"{row.name}  {gpus.used}/{gpus.gpus} used  {gpus.free} free  nodes {states}")


def _redraw(client: Client, look: TopOptions) -> None:
    latest: Usage | None = None
    changed: dict[str, tuple[str, float]] = {}

    def lines(style: Style, room: int) -> Iterator[str]:
        if latest is not None:
            now = time.monotonic()
            marks = {name: mark for name, (mark, at) in changed.items() if now - at < MARKED_S}
            # Besides the rows there are notes about them, and the largest users.
            most = max(1, room - 14)
            yield from usage_lines(
                latest, style, level=look.level, wide=look.output is Output.WIDE, marks=marks, most=most
            )

    with redrawn(lines) as draw:
        for usage in readings(client, lambda: _read(client, look)):
            check_level(usage, look.level)
            if latest is not None:
                changed = {**changed, **_marked(latest, usage, look)}
            latest = usage
            draw()


def _marked(before: Usage, after: Usage, look: TopOptions) -> Mapping[str, tuple[str, float]]:
    """Return the marks of rows: `+` more in use, or a new one, `-` less, `~` changed in another way."""
    known, now = _uses(before, look), time.monotonic()
    found = {}
    for name, use in _uses(after, look).items():
        old = known.get(name)
        if old != use:
            grown = 0 if old is None else use.gpus.used - old.gpus.used
            found[name] = ("+" if old is None or grown > 0 else "-" if grown < 0 else "~", now)
    return found


def _uses(usage: Usage, look: TopOptions) -> dict[str, Use]:
    return {**{row.name: row.use for row in _rows(usage, look)}, TOTAL: usage.total}
