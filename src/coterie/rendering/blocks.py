"""Rectangles of SVG, arranged beside and below each other; each is drawn from its own upper left corner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from coterie.rendering.text import columns, cut, visible

INK = "#1f2933"
FAINT = "#5b6770"


@dataclass(frozen=True, slots=True)
class Block:
    """An SVG fragment and its size in pixels."""

    width: int
    height: int
    lines: tuple[str, ...]

    def at(self, x: int, y: int) -> Iterator[str]:
        """Yield the block at a position."""
        yield f'<g transform="translate({x},{y})">'
        yield from self.lines
        yield "</g>"


def xml(text: str) -> str:
    """Return a name as XML text, without control characters, which XML forbids, and without markup."""
    return escape(visible(text))


def text(words: str, x: int, y: int, size: int, *, colour: str = INK, bold: bool = False, end: bool = False) -> str:
    """Return a line of text with its baseline at `y`."""
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}{anchor}>{xml(words)}</text>'


def length(words: str, size: int, *, bold: bool = False) -> int:
    """Return an upper estimate of the width of a line of text, since fonts differ; bold digits are the widest."""
    return int(columns(visible(words)) * size * (0.7 if bold else 0.62)) + 1


def shortened(words: str, size: int, room: int) -> str:
    """Return a text shortened to a width in pixels."""
    return cut(visible(words), max(1, int(room / (size * 0.62))))


def flow(blocks: Sequence[Block], width: int, gap: int) -> Block:
    """Return blocks side by side, wrapped to new rows at the width."""
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
    """Return blocks below each other."""
    lines: list[str] = []
    y = width = 0
    for block in blocks:
        y += gap if lines else 0
        lines.extend(block.at(0, y))
        y += block.height
        width = max(width, block.width)
    return Block(width, y, tuple(lines))
