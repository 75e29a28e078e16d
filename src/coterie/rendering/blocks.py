"""Rectangles of SVG that are put beside and below each other. Each is drawn from its own upper left corner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from coterie.rendering.text import columns, cut, visible

INK = "#1f2933"
FAINT = "#5b6770"


@dataclass(frozen=True, slots=True)
class Block:
    """Some SVG and the room it takes, in pixels."""

    width: int
    height: int
    lines: tuple[str, ...]

    def at(self, x: int, y: int) -> Iterator[str]:
        """Yield the block, put somewhere."""
        yield f'<g transform="translate({x},{y})">'
        yield from self.lines
        yield "</g>"


def xml(text: str) -> str:
    """Return a name as XML text: no control characters, which XML forbids, and no markup."""
    return escape(visible(text))


def text(words: str, x: int, y: int, size: int, *, colour: str = INK, bold: bool = False, end: bool = False) -> str:
    """Return a line of text whose base line is at `y`."""
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}{anchor}>{xml(words)}</text>'


def length(words: str, size: int) -> int:
    """Estimate how wide a line of text is, rather too wide than too narrow, since fonts differ."""
    return int(columns(visible(words)) * size * 0.62) + 1


def shortened(words: str, size: int, room: int) -> str:
    """Return a text that fits some pixels."""
    return cut(visible(words), max(1, int(room / (size * 0.62))))


def flow(blocks: Sequence[Block], width: int, gap: int) -> Block:
    """Put blocks beside each other, and in a new row where the width is used up."""
    lines: list[str] = []
    x = y = row = reach = 0
    for block in blocks:
        if x and x + block.width > width:
            x, y, row = 0, y + row + gap, 0
        lines.extend(block.at(x, y))
        reach = max(reach, x + block.width)
        x += block.width + gap
        row = max(row, block.height)
    return Block(reach, y + row, tuple(lines))


def stack(blocks: Iterable[Block], gap: int) -> Block:
    """Put blocks below each other."""
    lines: list[str] = []
    y = width = 0
    for block in blocks:
        y += gap if lines else 0
        lines.extend(block.at(0, y))
        y += block.height
        width = max(width, block.width)
    return Block(width, y, tuple(lines))
