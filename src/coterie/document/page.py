"""Lines and positions of a user's text, independent of its content."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coterie.errors import Fault, Place, SpecErrors

# The line ends that the YAML scanner recognises; other rules would point to wrong lines.
BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_LONGEST_FRAME = 400


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The allowed size of a text: characters, levels of nesting, nodes with all aliases expanded."""

    size: int = 4 << 20
    depth: int = 64
    nodes: int = 200_000


LIMITS = TextLimits()


@dataclass(frozen=True, slots=True)
class Page:
    """The lines that YAML marks refer to, and the lines the user wrote where a template changed some of them.

    Where a template moved lines, `origins` has for each of them the line that it was made of, 0 where none is known.
    """

    file: str
    lines: tuple[str, ...]
    shown: tuple[str, ...] | None = None
    origins: tuple[int, ...] | None = None

    @staticmethod
    def of(text: str, file: str, shown: str | None = None, origins: tuple[int, ...] | None = None) -> Page:
        """Split a text into lines exactly as the YAML scanner does."""
        return Page(file, tuple(BREAK.split(text)), None if shown is None else tuple(BREAK.split(shown)), origins)

    def place(self, line: int, column: int = 1, length: int = 1) -> Place:
        """Return a place framed by its line and the line before; all numbers count from one.

        On a line that a template changed, columns mean nothing to the user, so the whole line is marked.
        """
        file, lines, read = self.file, self.lines if self.shown is None else self.shown, self.lines[line - 1 : line]
        if self.origins is not None:
            line = min(max(line, 1), len(self.origins))
            if self.origins[line - 1]:
                line = self.origins[line - 1]
            else:
                file, lines = f"{file} (rendered)", self.lines
        line = min(max(line, 1), len(lines))
        text = lines[line - 1]
        if self.shown is not None and read != (text,):
            bare = text.strip()
            column, length = len(text) - len(text.lstrip()) + 1, len(bare)
        frame = tuple((number, lines[number - 1][:_LONGEST_FRAME]) for number in (line - 1, line) if number > 0)
        return Place(file, line, column, max(length, 1), frame)


@dataclass(slots=True)
class NodePosition:
    """The position of one node and of the values it holds; aliases share the children of their anchors."""

    line: int
    column: int
    length: int
    size: int = 1
    keys: dict[str, tuple[NodePosition, NodePosition]] | None = None
    items: list[NodePosition] | None = None


def refused(place: Place, message: str, hint: str = "") -> SpecErrors:
    """Return an error with one fault at one place, for the caller to raise."""
    return SpecErrors([Fault(message, hint=hint, place=place)])
