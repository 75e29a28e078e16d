"""The usage as a table: a row per pool and per domain, a total, and the largest users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.rendering.scene import abbreviations
from coterie.rendering.text import Ink, Style, columns, count, cut, pad, paint, visible, wrapped
from coterie.rendering.usage import PoolUse, Usage, UsageRow, Use, rows_of
from coterie.topology.abbreviations import Abbreviations

# In a table of more rows than this, finer levels are folded, since it could not be read at once.
_ROWS = 60
# The key of the total among the marks of rows: no row has an empty name.
TOTAL = ""
_USERS = 5
_HEADS = ("USED/TOTAL", "USE", "FREE", "NODES A/I/O/T")
_MORE = ("OWN", "LIMIT", "RUNNING", "WAITING")
_LEAST = 12


def usage_lines(
    usage: Usage,
    style: Style,
    *,
    level: str | None = None,
    wide: bool = False,
    marks: Mapping[str, str] | None = None,
    most: int = _ROWS,
) -> Iterator[str]:
    """Yield the table of usage, its total, and the largest users.

    `level` shows only the domains of that level; without it, finer levels are dropped where there would be more than
    `most` rows. With `marks`, by the names of rows, the table has a first column for them.
    """
    if not usage.pools:
        yield "There are no pools; an admin can create one with `coterie pool apply`."
        return
    depth = len(max((pool.scene.levels for pool in usage.pools), key=len)) if wide else _depth(usage, most)
    short = Abbreviations() if wide else abbreviations(pool.scene for pool in usage.pools)
    rows = [(row, pool) for pool in usage.pools for row in rows_of(pool, level, depth)]
    known = any(pool.about.get("gpus") for pool in usage.pools)
    more = _MORE if wide and known else ()
    table = [("POOL/DOMAIN", *_HEADS, *more)]
    table += [
        (_name(row, pool, short, flat=level is not None), *_cells(row.use), *_about(row, pool, more))
        for row, pool in rows
    ]
    table.append(("total", *_cells(usage.total), *_sums(usage, more)))
    keys = [None, *(row.name for row, _ in rows), TOTAL]
    colours = ["", *(_colour(row.use) for row, _ in rows), ""]
    signs = [marks.get(key, " ") if key is not None else " " for key in keys] if marks is not None else []
    yield from _drawn(table, colours, signs, style)
    yield from _said(usage, rows, depth, short, style, level=level)
    yield from _users(usage, style, wide=wide)


def _depth(usage: Usage, most: int) -> int:
    """Return the number of shown levels: as many as keep the table within the limit, and at least one."""
    depth = max(len(pool.scene.levels) for pool in usage.pools)
    while depth > 1 and sum(1 for pool in usage.pools for _ in rows_of(pool, None, depth)) > most:
        depth -= 1
    return depth


def _name(row: UsageRow, pool: PoolUse, short: Abbreviations, *, flat: bool) -> str:
    if not row.level:
        return visible(row.pool) + (" (shared)" if pool.shared_with else "")
    if row.outside:
        return f"{'  ' * (1 if flat else len(row.path) + 1)}(no {visible(row.level)})"
    path = row.path if flat else row.path[-1:]
    return f"{'  ' * (1 if flat else len(row.path))}{visible(short.domain(path))}{_signs(row.use)}"


def _signs(use: Use) -> str:
    gpus = use.gpus
    return ("!" if gpus.cordoned else "") + ("*" if gpus.not_ready else "") + ("^" if gpus.overfull else "")


def _cells(use: Use) -> tuple[str, ...]:
    gpus, nodes = use.gpus, use.nodes
    share = _share(gpus.used, gpus.gpus)
    states = f"{nodes.allocated:,}/{nodes.idle:,}/{nodes.other:,}/{nodes.total:,}"
    return f"{gpus.used:,}/{gpus.gpus:,}", share, f"{gpus.free:,}", states


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _about(row: UsageRow, pool: PoolUse, more: Sequence[str]) -> tuple[str, ...]:
    if not more:
        return ()
    if row.level:
        return ("",) * len(more)
    gpus, busy = pool.about["gpus"], pool.about["workflows"]
    limit = "none" if gpus["limit"] is None else f"{gpus['limit']:,}"
    return f"{gpus['used']:,}", limit, f"{busy['running']:,}", f"{busy['waiting']:,}"


def _sums(usage: Usage, more: Sequence[str]) -> tuple[str, ...]:
    if not more:
        return ()
    own = sum(pool.about["gpus"]["used"] for pool in usage.pools)
    busy = [sum(pool.about["workflows"][word] for pool in usage.pools) for word in ("running", "waiting")]
    return f"{own:,}", "", *(f"{number:,}" for number in busy)


def _colour(use: Use) -> str:
    return "green" if use.gpus.free else "red" if use.gpus.gpus else "dim"


def _drawn(table: Sequence[Sequence[str]], colours: Sequence[str], signs: Sequence[str], style: Style) -> Iterator[str]:
    widths = [max(columns(row[at]) for row in table) for at in range(len(table[0]))]
    lead = 3 if signs else 0
    first = max(_LEAST, min(widths[0], style.width - lead - sum(widths[1:]) - 2 * (len(widths) - 1)))
    free = 1 + _HEADS.index("FREE")
    for number, row in enumerate(table):
        cells = [Ink(pad(_indented(row[0], first, style.symbols.more), first))]
        for at, cell in enumerate(row[1:], 1):
            colour = colours[number] if at == free else ""
            cells += [Ink("  "), Ink(pad(cell, widths[at], right=True), colour)]
        head = [Ink(signs[number], "yellow"), Ink("  ")] if signs else []
        yield paint([*head, *cells], style).rstrip()


def _indented(name: str, room: int, more: str) -> str:
    """Return a name that fits some columns; in few columns it is first indented less, and then cut."""
    bare = name.lstrip(" ")
    return name if columns(name) <= room else pad(cut(bare, room, more), room, right=True)


def _said(
    usage: Usage,
    rows: Sequence[tuple[UsageRow, PoolUse]],
    depth: int,
    short: Abbreviations,
    style: Style,
    *,
    level: str | None,
) -> Iterator[str]:
    """Yield the meanings of the table's signs, and what it leaves out."""
    said = ["A/I/O/T: nodes in use, idle, out of service, in all."]
    domains = [row.use.gpus for row, _ in rows if row.level and not row.outside]
    if any(total.cordoned for total in domains):
        said.append("! has cordoned nodes.")
    if any(total.not_ready for total in domains):
        said.append("* has nodes that are not ready.")
    if any(total.overfull for total in domains):
        said.append("^ has nodes whose pods hold more GPUs than they have.")
    if any(pool.shared_with for pool in usage.pools):
        said.append("(shared): other pools have some of the nodes too; the total counts each once.")
    finest = max((pool.scene.levels for pool in usage.pools), key=len)
    if level is None and depth < len(finest):
        said.append(f"Finer levels are folded; --level {visible(finest[-1])} shows them.")
    said += short.note()
    yield ""
    yield from wrapped(" ".join(said), style.width)


def _users(usage: Usage, style: Style, *, wide: bool) -> Iterator[str]:
    """Yield the largest users."""
    if not usage.holders:
        return
    shown = usage.holders if wide else usage.holders[:_USERS]
    rows = [("WHO USES MOST", "GPUS", "SHARE", "ON NODES OF")]
    for owner, gpus, pools in shown:
        share = _share(gpus, usage.total.gpus.gpus)
        rows.append((visible(owner) or "-", f"{gpus:,}", share, ", ".join(map(visible, pools))))
    widths = [max(columns(row[at]) for row in rows) for at in range(3)]
    first = max(_LEAST, min(widths[0], style.width - sum(widths[1:]) - 6 - _LEAST))
    yield ""
    for row in rows:
        name = pad(cut(row[0], first, style.symbols.more), first)
        line = f"{name}  {pad(row[1], widths[1], right=True)}  {pad(row[2], widths[2], right=True)}  {row[3]}"
        yield cut(line, style.width, style.symbols.more).rstrip()
    if len(shown) < len(usage.holders):
        yield f"and {count(len(usage.holders) - len(shown), 'other')}; -o wide shows all"
