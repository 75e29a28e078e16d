"""Lines and spots: what a position in a user's text is, before anybody asks what stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coterie.errors import Fault, Place, SpecErrors

# Where the YAML scanner sees the end of a line; counting otherwise would point at wrong lines.
BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_LONGEST_FRAME = 400


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a text may be: characters, levels of nesting, nodes with all aliases expanded."""

    size: int = 4 << 20
    depth: int = 64
    nodes: int = 200_000


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Page:
    """The lines that marks count in, and, where a template changed some of them, the lines the user wrote."""

    file: str
    lines: tuple[str, ...]
    shown: tuple[str, ...] | None = None

    @staticmethod
    def of(text: str, file: str, shown: str | None = None) -> Page:
        """Split a text into lines exactly as the YAML scanner does."""
        return Page(file, tuple(BREAK.split(text)), None if shown is None else tuple(BREAK.split(shown)))

    def place(self, line: int, column: int = 1, length: int = 1) -> Place:
        """Return a place with the line itself and the one before as its frame; all numbers count from one.

        On a line that a template changed, columns mean nothing to the user, so the whole line is marked.
        """
        lines = self.lines if self.shown is None else self.shown
        line = min(max(line, 1), len(lines))
        text = lines[line - 1]
        if self.shown is not None and self.lines[line - 1 : line] != (text,):
            bare = text.strip()
            column, length = len(text) - len(text.lstrip()) + 1, len(bare)
        frame = tuple((number, lines[number - 1][:_LONGEST_FRAME]) for number in (line - 1, line) if number > 0)
        return Place(self.file, line, column, max(length, 1), frame)


@dataclass(slots=True)
class Spot:
    """Where one node stands, and where what it holds stands; aliases share the children of their anchors."""

    line: int
    column: int
    length: int
    size: int = 1
    keys: dict[str, tuple[Spot, Spot]] | None = None
    items: list[Spot] | None = None


def refused(place: Place, message: str, hint: str = "") -> SpecErrors:
    """Return one fault at one place, ready to be raised."""
    return SpecErrors([Fault(message, hint=hint, place=place)])
