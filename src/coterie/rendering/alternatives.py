"""The candidate domains of groups as a table, and the obstacles of the others, counted in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coterie.rendering.text import Ink, Style, columns, count, cut, pad, paint, visible, wrapped
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.ranges import fold

Json = dict[str, Any]

CHOSEN = "✔"
_INDENT = "  "
_NUMBERS = frozenset({"FITS", "FREE GPUS", "LEFT", "NODES", "EXTRA"})


def choice_lines(name: str, choice: Json, short: Abbreviations, style: Style, *, wide: bool = False) -> Iterator[str]:
    """Yield the candidate domains of a gang's groups: one sentence, and one row per domain; cut unless `wide`."""
    level, wanted = choice["level"], count(choice["wanted"], "task")
    nodes = choice["counted"]["nodes"]
    if level is None:
        yield visible(f"{name}: {wanted}, free to go anywhere; {counted(nodes, 'node', 'take one')}")
        return
    groups = fold(path[-1][1] for path in choice["groups"] if path[-1][1] != "default")
    kept = f"{choice['type']} {level}" + (f": {groups}" if groups else "")
    size = f"{wanted} each" if len(choice["groups"]) > 1 else wanted
    yield from wrapped(visible(f"{name}: {size}, {kept}"), style.width, _INDENT)
    yield from (
        f"{_INDENT}{line}" for line in _table(choice, short, style, 1 << 16 if wide else style.width - len(_INDENT))
    )
    if choice["more"]:
        yield f"{_INDENT}  and {count(choice['more'], f'more {visible(level)}')}"


def counted(found: Json, word: str, good: str) -> str:
    """Return a total and its breakdown by obstacle: `12 racks: 7 full, 2 cordoned, 3 fit`."""
    parts = [f"{one['count']:,} {visible(one['why'])}" for one in found["excluded"]]
    parts += [f"{found['good']:,} {good}"] if found["good"] or not parts else []
    return f"{count(found['total'], word)}: {', '.join(parts)}"


def _table(choice: Json, short: Abbreviations, style: Style, width: int) -> Iterator[str]:
    preferred = choice["type"] == "preferred"
    names = ["", str(choice["level"]).upper(), "FITS", "FREE GPUS", "LEFT", "NODES", *(["EXTRA"] if preferred else [])]
    rows = [[*names, "LACKS"]]
    for one in choice["domains"]:
        extra = ["-" if one["extra_domains"] is None else f"+{one['extra_domains']}"] if preferred else []
        rows.append(
            [
                CHOSEN if one["chosen"] else "",
                visible(short.domain(one["domain"])),
                f"{one['fits']} of {one['wanted']}",
                f"{one['free_gpus']:,}",
                f"{one['left_gpus']:,}",
                f"{one['nodes']:,}",
                *extra,
                visible(one["lacks"] or ""),
            ]
        )
    widths = [max(columns(row[at]) for row in rows) for at in range(len(names) + 1)]
    for row in rows:
        cells = [pad(cell, widths[at], right=rows[0][at] in _NUMBERS) for at, cell in enumerate(row)]
        mark = Ink(cells[0], "green" if row[0] else "")
        rest = cut(f"  {'  '.join(cells[1:])}".rstrip(), max(1, width - widths[0]), style.symbols.more)
        yield paint([mark, Ink(rest)], style).rstrip()
