"""The rows of a map on a screen: label, nodes, numbers and notes side by side, or stacked on narrow screens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coterie.rendering.cells import Density, Legend, bar, node_inks
from coterie.rendering.scene import Area
from coterie.rendering.text import Ink, Style, columns, count, cut, cut_start, distinct_cuts, pad, paint

LEAST_CELLS = 18
_LABEL = 28
_NOTES = 20


@dataclass(frozen=True, slots=True)
class DomainRow:
    """One domain as it is drawn; `above` is empty where it is the same as in the row before."""

    above: str
    name: str
    area: Area
    numbers: str
    notes: str


def draw(
    rows: Iterable[DomainRow], density: Density, highlight: str | None, style: Style, legend: Legend
) -> Iterator[str]:
    """Yield the lines of some rows, with aligned columns."""
    found = list(rows)
    if not found:
        return
    more = style.symbols.more
    aboves = distinct_cuts((row.above for row in found), _LABEL, more)
    names = distinct_cuts((row.name for row in found), _LABEL, more)
    above, name = (max(map(columns, forms.values())) for forms in (aboves, names))
    numbers = max(columns(row.numbers) for row in found)
    notes = min(_NOTES, max(columns(row.notes) for row in found))
    lead = above + 2 * bool(above) + name + 2
    room = style.width - lead - numbers - 2 - notes - 2 * bool(notes)
    cells = [_cells(row.area, density, highlight, style, legend) for row in found]
    widest = max((span(cell) for row in cells for cell in row), default=0)
    beside = room >= max(LEAST_CELLS, widest)
    width = _even(cells, room if beside else style.width - 4, widest)
    folded = [broken(row, width) for row in cells]
    if not beside:
        yield from _stacked(found, folded, style)
        return
    width = max(span(line) for lines in folded for line in lines)
    for row, lines in zip(found, folded, strict=True):
        head = f"{pad(aboves[row.above], above)}  " if above else ""
        head += f"{pad(names[row.name], name)}  "
        tail = f"{' ' * (width - span(lines[0]))}  {pad(row.numbers, numbers, right=True)}"
        left = style.width - lead - width - 2 - numbers - 2
        notes_text = f"  {cut(row.notes, left, more)}" if row.notes else ""
        yield f"{head}{paint(lines[0], style)}{tail}{notes_text}".rstrip()
        for line in lines[1:]:
            yield f"{' ' * lead}{paint(line, style)}"


def _stacked(rows: Sequence[DomainRow], folded: Sequence[Sequence[list[Ink]]], style: Style) -> Iterator[str]:
    """Yield rows for narrow screens: the label above, the nodes below it."""
    more = style.symbols.more
    for row, lines in zip(rows, folded, strict=True):
        if row.above:
            yield cut_start(row.above, style.width, more)
        indent = "  "
        name = cut_start(row.name, max(8, style.width - len(indent) - len(row.numbers) - 2), more)
        head = f"{indent}{name}  {row.numbers}"
        left = style.width - columns(head) - 2
        yield f"{head}  {cut(row.notes, left, more)}" if row.notes and left >= 8 else head
        if row.notes and left < 8:
            yield f"{indent}{cut(row.notes, style.width - len(indent), more)}"
        for line in lines:
            yield f"{indent}  {paint(line, style)}"


def _cells(area: Area, density: Density, highlight: str | None, style: Style, legend: Legend) -> list[list[Ink]]:
    """Return a domain in pieces between which a line may break."""
    if density is Density.COUNTS:
        return [[*bar(area, highlight, style, legend), Ink(" ")], [Ink(count(area.total.nodes, "node"))]]
    signs = [node_inks(spot, density, highlight, style, legend) for spot in area.all_spots()]
    if density is Density.NODES:
        return signs
    return [[*inks, Ink(" ")] for inks in signs]


def span(inks: Sequence[Ink]) -> int:
    """Return how many columns some pieces take."""
    return sum(columns(ink.text) for ink in inks)


def broken(pieces: Sequence[list[Ink]], room: int) -> list[list[Ink]]:
    """Return pieces on as few lines of `room` columns as their order allows; a trailing blank is dropped."""
    lines: list[list[Ink]] = [[]]
    used = 0
    for piece in pieces:
        needed = columns("".join(ink.text for ink in piece).rstrip())
        if used and used + needed > room:
            lines.append([])
            used = 0
        lines[-1].extend(piece)
        used += span(piece)
    for line in lines:
        if line and line[-1].text.isspace():
            line.pop()
    return lines


def _even(rows: Sequence[Sequence[list[Ink]]], room: int, least: int) -> int:
    """Return the smallest room in which no row takes more lines than in `room`, since full lines look ragged."""
    most = max(len(broken(row, room)) for row in rows)
    return bisect_left(
        range(room + 1), 1, lo=least, key=lambda width: max(len(broken(row, width)) for row in rows) <= most
    )
