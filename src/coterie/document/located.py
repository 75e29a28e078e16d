"""Located YAML: plain Python data, and the position in the user's text of every value and key.

Scalars follow the YAML 1.2 core schema (`yes` and `1:30` are text, `012` is twelve). Mapping keys are always text,
spelled as they were written. Refused are duplicate keys, tags that would construct objects, recursive aliases, and
documents that are too large, too deep or multiply by aliases. The merge key `<<` is supported, since workflow files
written for PyYAML's own loader use it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.document.page import BREAK, LIMITS, NodePosition, Page, TextLimits, refused
from coterie.document.yaml_events import DocumentReader
from coterie.errors import Place

Step = str | int
Path = tuple[Step, ...]

_UNPRINTABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: `data`, and the position of each part of it."""

    data: Any
    page: Page
    _root: NodePosition = field(repr=False)

    def place(self, path: Sequence[Step], *, key: bool = False) -> Place:
        """Return the place of the value at a path (or of its key); for an unknown path, that of its last known part."""
        spot, label = self._root, self._root
        for index, step in enumerate(path):
            below = _below(spot, step)
            if below is None:
                return self._at(label)
            name, spot = below
            # An item of a list has no key: its own start serves as the place of its key and of fields missing in it.
            label = name or spot
            if key and index == len(path) - 1:
                return self._at(label)
        return self._at(spot)

    def get(self, path: Sequence[Step]) -> Any:  # noqa: ANN401 - YAML holds data of any shape
        """Return the data at a path, or None for an unknown path."""
        found = self.data
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def _at(self, spot: NodePosition) -> Place:
        return self.page.place(spot.line, spot.column, spot.length)


def decode(data: bytes, file: str, limits: TextLimits = LIMITS) -> str:
    """Return bytes as text; raise `SpecErrors` when they are too many or not UTF-8."""
    if len(data) > limits.size + len("\ufeff".encode()):
        raise refused(Place(file), _size_message(len(data), limits), "Split it into several files.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refused(
            Place(file, line),
            f"this is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start} is not valid there",
            "Save the file as UTF-8. Compressed and binary files cannot be read.",
        ) from None


def load(
    text: str,
    file: str,
    *,
    shown: str | None = None,
    origins: tuple[int, ...] | None = None,
    limits: TextLimits = LIMITS,
) -> Document:
    """Return the only document of a text.

    `shown` is the text as the user wrote it, where a template changed lines, and `origins` are as for a `Page`.
    """
    found = documents(text, file, shown=shown, origins=origins, limits=limits)
    if len(found) > 1:
        raise refused(
            found[1].place(()),
            f"one document is expected here, but the file holds {len(found)}",
            'Remove the "---" lines, or give each document a file of its own.',
        )
    return found[0]


def documents(
    text: str,
    file: str,
    *,
    shown: str | None = None,
    origins: tuple[int, ...] | None = None,
    limits: TextLimits = LIMITS,
) -> list[Document]:
    """Return every non-empty document of a stream; raise `SpecErrors` for a text without any."""
    text = text.removeprefix("\ufeff")
    if len(text) > limits.size:
        raise refused(Place(file), _size_message(len(text), limits), "Split it into several files.")
    page = Page.of(text, file, shown, origins)
    if bad := _UNPRINTABLE.search(text):
        line = len(BREAK.findall(text, 0, bad.start())) + 1
        raise refused(
            page.place(line, bad.start() - text.rfind("\n", 0, bad.start())),
            f"the character U+{ord(bad[0]):04X} is not allowed in YAML",
            r'Remove it, or write it inside double quotes as an escape such as "\x07".',
        )
    found = [Document(data, page, root) for data, root in DocumentReader(text, page, limits).documents()]
    if not found:
        raise refused(Place(file, 1, 1), "the file is empty", "Write a document into it, or check the file name.")
    return found


def _below(spot: NodePosition, step: Step) -> tuple[NodePosition | None, NodePosition] | None:
    if spot.keys is not None and isinstance(step, str):
        return spot.keys.get(step)
    if spot.items is not None and isinstance(step, int) and 0 <= step < len(spot.items):
        return None, spot.items[step]
    return None


def _size_message(size: int, limits: TextLimits) -> str:
    return f"the file is too large: {size:,} characters, at most {limits.size:,} are allowed"
