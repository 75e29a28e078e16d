"""The capabilities of the screen, and printing to it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable

from coterie.cli.output.formats import Output, safe
from coterie.rendering.text import ASCII, BLOCKS, Style

_PLAIN = str.maketrans({"…": "...", "×": "x", "›": ">", "·": "-", "✔": "*"})
_NARROWEST = 20


def screen() -> Style:
    """Return the style of standard output: its width, block characters where it can encode them, colours if wanted."""
    encoding = sys.stdout.encoding or "ascii"
    symbols = BLOCKS if _carries("█▒░…", encoding) else ASCII
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(max(_NARROWEST, shutil.get_terminal_size((100, 24)).columns), symbols, colour)


def show(lines: Iterable[str]) -> None:
    """Print lines; characters that the output cannot encode are replaced, never an error."""
    encoding = sys.stdout.encoding or "ascii"
    for line in lines:
        text = line
        if not _carries(text, encoding):
            text = text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def show_data(data: object, output: Output) -> None:
    """Print an object as JSON or YAML, with characters that could control a terminal escaped."""
    if output is Output.YAML:
        import yaml

        # YAML refuses subclasses of text and numbers, and marks what occurs twice; JSON has neither.
        plain = json.loads(json.dumps(data))
        text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
        if not _harmless(text):
            text = yaml.safe_dump(plain, sort_keys=False)
        show([text.rstrip("\n")])
        return
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if not _harmless(text):
        text = "".join(char if _harmless(char) else json.dumps(char)[1:-1] for char in text)
    show([text])


def show_as(output: Output, data: object, names: Iterable[str], lines: Callable[[], Iterable[str]]) -> None:
    """Print an answer in the requested format: as data, as names, or as lines, which are computed only then."""
    match output:
        case Output.JSON | Output.YAML:
            show_data(data, output)
        case Output.NAME:
            show(map(safe, names))
        case _:
            show(lines())


def _harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


def _carries(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
