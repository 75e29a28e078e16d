"""Rows in columns of the screen's width; on a narrow one, less important columns are dropped before others are cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from coterie.rendering.text import Ink, Style, columns, cut, pad, paint

Row = Sequence[Ink]

# The width that the last column may take before others are dropped, and the minimum of the first one.
_ROOM = 28
_LEAST = 8


def painted(rows: Sequence[Row], style: Style, *, indent: str = "", whole: bool = False) -> Iterator[str]:
    """Yield rows with aligned cells; the last one is cut at the end of the screen, unless it is wanted whole."""
    widths = _widths(rows)
    for row in rows:
        room = style.width - len(indent) - sum(widths[:-1]) - 2 * (len(widths) - 1)
        last = row[-1] if whole else Ink(cut(row[-1].text, max(room, _LEAST), style.symbols.more), row[-1].colour)
        cells = [Ink(pad(ink.text, width), ink.colour) for ink, width in zip(row[:-1], widths, strict=False)]
        gaps = [piece for cell in cells for piece in (cell, Ink("  "))]
        yield (indent + paint([*gaps, last], style)).rstrip()


def fitted(rows: Sequence[Row], style: Style, spare: Collection[str], *, indent: str = "") -> list[Row]:
    """Return rows, the first with the column names, whose last column has enough room.

    Columns named in `spare` are dropped for that, in that order; then the first one is cut.
    """
    kept: list[Row] = list(rows)
    for name in spare:
        if _missing(kept, style, indent) <= 0:
            return kept
        at = next((at for at, ink in enumerate(kept[0]) if ink.text == name), None)
        if at is not None:
            kept = [[*row[:at], *row[at + 1 :]] for row in kept]
    missing = _missing(kept, style, indent)
    if missing <= 0:
        return kept
    first = max(_LEAST, _widths(kept)[0] - missing)
    return [[Ink(cut(row[0].text, first, style.symbols.more), row[0].colour), *row[1:]] for row in kept]


def _missing(rows: Sequence[Row], style: Style, indent: str) -> int:
    widths = _widths(rows)
    return len(indent) + sum(widths[:-1]) + 2 * (len(widths) - 1) + min(widths[-1], _ROOM) - style.width


def _widths(rows: Sequence[Row]) -> list[int]:
    return [max(columns(row[at].text) for row in rows) for at in range(len(rows[0]))] if rows else []
