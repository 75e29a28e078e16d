"""Text for terminals: names without control characters, aligned columns, and lines that fit."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_COLOURS = {"green": "32", "yellow": "33", "red": "31", "cyan": "1;36", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class Symbols:
    """The characters of a map, all distinct, so that it is readable without colour."""

    used: str
    other: str
    free: str
    more: str  # marks a cut
    cordoned: str = "!"
    not_ready: str = "*"
    overfull: str = "^"
    none: str = "-"


BLOCKS = Symbols("█", "▒", "░", "…")
ASCII = Symbols("#", "+", ".", "~")


@dataclass(frozen=True, slots=True)
class Style:
    """The capabilities of the screen: its width, its characters, and whether it shows colours."""

    width: int = 100
    symbols: Symbols = BLOCKS
    colour: bool = False


@dataclass(frozen=True, slots=True)
class Ink:
    """A piece of a line, and its colour where colours are shown."""

    text: str
    colour: str = ""


def paint(inks: Iterable[Ink], style: Style) -> str:
    """Return the pieces as one line."""
    return "".join(
        f"\x1b[{_COLOURS[ink.colour]}m{ink.text}\x1b[0m" if ink.colour and style.colour and ink.text else ink.text
        for ink in inks
    )


@lru_cache(maxsize=1 << 12)
def visible(text: str) -> str:
    """Return a name on one line with control characters spelled out, so that it cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def columns(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def cpu_text(thousandths: int) -> str:
    """Return a number of CPUs, never with an exponent."""
    return f"{thousandths / 1000:,.3f}".rstrip("0").rstrip(".")


def bytes_text(number: int, digits: int = 3) -> str:
    """Return an amount of memory in the largest unit up to GiB of which it has at least one, never with an exponent."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= size:
            whole = len(str(number // size))
            return f"{number / size:.{digits if whole <= digits else max(whole, digits + 3)}g} {unit}"
    return f"{number} {'byte' if number == 1 else 'bytes'}"


def cut(text: str, limit: int, more: str = "…") -> str:
    """Return a text of at most `limit` columns, with a mark where its end is cut."""
    if columns(text) <= limit:
        return text
    room = limit - columns(more)
    kept = ""
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept += char
    return kept + more if limit > 0 else ""


def cut_start(text: str, limit: int, more: str = "…") -> str:
    """Return a text of at most `limit` columns, with a mark where its start is cut.

    For names and paths, which differ at their ends.
    """
    return cut(text[::-1], limit, more[::-1])[::-1]


def cut_middle(text: str, limit: int, more: str = "…") -> str:
    """Return a text of at most `limit` columns, with a mark where its middle is cut."""
    if columns(text) <= limit:
        return text
    start = cut(text, limit // 2, "")
    return start + cut_start(text, limit - columns(start), more)


def distinct_cuts(texts: Iterable[str], limit: int, more: str = "…") -> dict[str, str]:
    """Return texts cut to at most `limit` columns, at the start where that keeps them distinct, else in the middle.

    Those that no cut keeps distinct are left whole.
    """
    known = dict.fromkeys(texts)
    left, forms = list(known), {text: text for text in known}
    for shortened in (cut_start, cut_middle, cut):
        found = {text: shortened(text, limit, more) for text in left}
        numbers = Counter(found.values())
        forms |= {text: form for text, form in found.items() if numbers[form] == 1}
        left = [text for text, form in found.items() if numbers[form] > 1]
    return forms


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return a text padded with blanks to a number of columns."""
    blanks = " " * max(0, width - columns(text))
    return blanks + text if right else text + blanks


def table(rows: Sequence[Sequence[str]], *, numbers: frozenset[int] = frozenset(), gap: int = 2) -> Iterator[str]:
    """Yield rows with aligned cells; the columns in `numbers` are right-aligned."""
    if not rows:
        return
    widths = [max(columns(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (pad(cell, widths[at], right=at in numbers) for at, cell in enumerate(row))
        yield (" " * gap).join(cells).rstrip()


def wrapped(text: str, width: int, indent: str = "", first: str = "") -> Iterator[str]:
    """Yield a text wrapped at blanks to `width` columns, with `first` before the first line and `indent` before others.

    A word that is longer than a line is left whole, so that it can be copied.
    """
    line = first
    empty = True
    for word in text.split(" "):
        longer = line + word if empty else f"{line} {word}"
        if not empty and columns(longer) > width:
            yield line
            line = indent + word
        else:
            line = longer
        empty = False
    yield line


def count(number: int, word: str) -> str:
    """Return `1 node`, `2 nodes`, `1,234 nodes`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def share(part: int, whole: int, word: str) -> str:
    """Return `72 of 100 nodes`, or `100 nodes` where that is all of them."""
    return count(whole, word) if part == whole else f"{part:,} of {count(whole, word)}"


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def legend(marks: Iterable[tuple[str, str]]) -> str:
    """Return the meanings of marks, each once, in the given order."""
    return "   ".join(dict.fromkeys(f"{mark} {meaning}" for mark, meaning in marks))
