"""YAML events to data and positions, with an explicit stack, so that nesting depth is a checked limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from yamlcore import CCoreLoader

from coterie.document.page import NodePosition, Page, TextLimits, refused
from coterie.errors import Place, SpecErrors

_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null"))


class WrittenInt(int):
    """A whole number whose spelling carries more than its value, such as `012`."""

    written: str


class WrittenFloat(float):
    """A number whose spelling carries more than its value, such as `3.10`."""

    written: str


@dataclass(slots=True)
class _OpenNode:
    """A mapping or sequence that has begun and not ended."""

    spot: NodePosition
    data: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | None = None
    key_spot: NodePosition | None = None
    merged: list[tuple[Any, NodePosition, NodePosition]] = field(default_factory=list)


class DocumentReader:
    """The conversion of the event stream of one text to documents."""

    def __init__(self, text: str, page: Page, limits: TextLimits) -> None:
        self._page = page
        self._limits = limits
        self._loader: Any = CCoreLoader(text)
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, tuple[Any, NodePosition]] = {}
        self._nodes = 0
        self._root: tuple[Any, NodePosition] | None = None

    def documents(self) -> Iterator[tuple[Any, NodePosition]]:
        """Yield the data and the root position of every non-empty document."""
        try:
            while (event := self._loader.get_event()) is not None:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors, self._root = {}, None
                elif isinstance(event, yaml.DocumentEndEvent):
                    if self._root is not None and self._root[0] is not None:
                        yield self._root
                elif isinstance(event, yaml.NodeEvent):
                    self._node(event)
                elif isinstance(event, yaml.CollectionEndEvent):
                    self._close()
        except yaml.YAMLError as error:
            raise self._syntax(error) from None
        finally:
            self._loader.dispose()

    def _node(self, event: Any) -> None:  # noqa: ANN401 - the event classes share no typed base
        spot = _spot(event)
        if isinstance(event, yaml.AliasEvent):
            value, anchored = self._alias(event.anchor, spot)
            spot.size, spot.keys, spot.items = anchored.size, anchored.keys, anchored.items
            self._count(spot)
            self._put(value, spot)
            return
        self._count(spot)
        if isinstance(event, yaml.ScalarEvent):
            parent = self._stack[-1] if self._stack else None
            if parent is not None and isinstance(parent.data, dict) and parent.key is None:
                self._key(parent, event, spot)
                return
            value = self._scalar(event, spot)
            if event.anchor:
                self._anchors[event.anchor] = value, spot
            self._put(value, spot)
            return
        self._open(event, spot)

    def _open(self, event: Any, spot: NodePosition) -> None:  # noqa: ANN401 - the event classes share no typed base
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            raise self._tag_refused(event.tag, spot)
        if self._stack and isinstance(self._stack[-1].data, dict) and self._stack[-1].key is None:
            raise refused(
                self._at(spot),
                "a mapping or list cannot be the key of a mapping",
                'Put quotes around a value that begins with "{" or "[", such as "{{output}}".',
            )
        if len(self._stack) >= self._limits.depth:
            raise refused(self._at(spot), f"nested too deeply: at most {self._limits.depth} levels are allowed")
        if mapping:
            spot.keys = {}
        else:
            spot.items = []
        self._stack.append(_OpenNode(spot, {} if mapping else [], event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        for value, key_spot, spot in done.merged:
            self._merge(done, value, key_spot, spot)
        if done.anchor:
            self._anchors[done.anchor] = done.data, done.spot
        self._put(done.data, done.spot)

    def _put(self, value: Any, spot: NodePosition) -> None:  # noqa: ANN401 - YAML holds data of any shape
        if not self._stack:
            self._root = value, spot
            return
        parent = self._stack[-1]
        if isinstance(parent.data, list):
            parent.data.append(value)
            parent.spot.items = parent.spot.items or []
            parent.spot.items.append(spot)
        elif parent.key is None or parent.key_spot is None or parent.spot.keys is None:
            raise refused(self._at(spot), "an alias cannot be the key of a mapping", "Write the key out.")
        else:
            if parent.key_spot.size == 0:
                parent.merged.append((value, parent.key_spot, spot))
            else:
                parent.data[parent.key] = value
                parent.spot.keys[parent.key] = parent.key_spot, spot
            parent.key = parent.key_spot = None
        parent.spot.size += spot.size

    def _key(self, parent: _OpenNode, event: Any, spot: NodePosition) -> None:  # noqa: ANN401 - the event classes share no typed base
        if event.tag not in (None, "!") and event.tag not in _SCALAR_TAGS:
            raise self._tag_refused(event.tag, spot)
        name: str = event.value
        known = parent.spot.keys or {}
        if not event.style and name == "<<":
            spot.size = 0  # marks the key of a merge until its value follows
        elif name in known:
            raise refused(
                self._at(spot),
                f'"{_short(name)}" is given twice, first in line {known[name][0].line}',
                "Keep one of the two.",
            )
        if len(name) > 1024:
            raise refused(self._at(spot), "a key is longer than 1024 characters")
        if not known and parent.spot.length == 1:
            parent.spot.length = spot.length
        parent.key, parent.key_spot = name, spot

    def _merge(self, into: _OpenNode, value: Any, key_spot: NodePosition, spot: NodePosition) -> None:  # noqa: ANN401 - any shape
        sources = list(zip(value, spot.items or [], strict=True)) if isinstance(value, list) else [(value, spot)]
        for source, where in sources:
            if not isinstance(source, dict) or where.keys is None:
                raise refused(
                    self._at(key_spot),
                    'the merge key "<<" takes a mapping or a list of mappings',
                    "Example: <<: *defaults",
                )
            for name, entry in source.items():
                if isinstance(into.data, dict) and into.spot.keys is not None and name not in into.data:
                    into.data[name] = entry
                    into.spot.keys[name] = where.keys[name]

    def _alias(self, anchor: str | None, spot: NodePosition) -> tuple[Any, NodePosition]:
        if any(open_.anchor == anchor for open_ in self._stack):
            raise refused(self._at(spot), f'the alias "*{anchor}" is inside the value that it refers to')
        if anchor is None or anchor not in self._anchors:
            raise refused(
                self._at(spot),
                f'there is no anchor "&{anchor}" before this alias',
                'Put quotes around text that begins with "*".',
            )
        return self._anchors[anchor]

    def _scalar(self, event: Any, spot: NodePosition) -> Any:  # noqa: ANN401 - a scalar is text, number, truth or nothing
        written: str = event.value
        if event.tag == "!" or (event.tag is None and event.style):
            return written
        tag = event.tag or self._loader.resolve(yaml.ScalarNode, written, event.implicit)
        if tag not in _SCALAR_TAGS:
            raise self._tag_refused(tag, spot)
        try:
            value = self._loader.yaml_constructors[tag](self._loader, yaml.ScalarNode(tag, written))
        except (ValueError, KeyError, IndexError):
            kind = tag.removeprefix(_TAG)
            raise refused(
                self._at(spot), f"{_short(written)} cannot be read as {kind}", "Put it in quotes if it is text."
            ) from None
        if isinstance(value, int | float) and not isinstance(value, bool) and _spelling(value) != written:
            number = WrittenInt(value) if isinstance(value, int) else WrittenFloat(value)
            number.written = written
            return number
        return value

    def _count(self, spot: NodePosition) -> None:
        self._nodes += spot.size
        if self._nodes > self._limits.nodes:
            raise refused(
                self._at(spot),
                f"the document holds more than {self._limits.nodes:,} values once its aliases are expanded",
                "Aliases of aliases multiply; write less, or split the document.",
            )

    def _tag_refused(self, tag: str, spot: NodePosition) -> SpecErrors:
        shown = tag.replace(_TAG, "!!")
        return refused(
            self._at(spot),
            f'the tag "{_short(shown)}" is not allowed',
            'Remove it; put quotes around text that begins with "!".',
        )

    def _at(self, spot: NodePosition) -> Place:
        return self._page.place(spot.line, spot.column, spot.length)

    def _syntax(self, error: yaml.YAMLError) -> SpecErrors:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        context = getattr(error, "context", None)
        line = min(mark.line + 1, len(self._page.lines)) if mark else 1
        column = mark.column + 1 if mark else 1
        while line > 1 and not self._page.lines[line - 1].strip():
            # At the end of the text, the last line with content is shown instead of the empty end.
            line -= 1
            column = len(self._page.lines[line - 1])
        place = self._page.place(line, column)
        # The scanner often reports an error of this line only on the next one.
        near = [self._page.lines[number - 1] for number in (line - 1, line) if number > 0]
        return refused(place, f"this is not valid YAML: {problem}{f' ({context})' if context else ''}", _advice(near))


def _advice(near: Sequence[str]) -> str:
    if any("\t" in text[: len(text) - len(text.lstrip())] for text in near):
        return "YAML is indented with spaces; this line has a tab."
    if any(re.search(r"(:|-)\s+(\{\{|\{%)", text) for text in near):
        return 'Put quotes around a value that begins with "{{".'
    if any(re.search(r"(:|-)\s+[*&@`%]", text) for text in near):
        return 'Put quotes around text that begins with "*", "&", "@", "`" or "%".'
    if any(re.search(r":\s+[^\"'#|>\[{&*!][^#]*:(\s|$)", text) for text in near):
        return 'Put quotes around text that contains ": ".'
    return "Check the indentation, and that quotes and brackets are closed."


def _spot(event: Any) -> NodePosition:  # noqa: ANN401 - the event classes share no typed base
    start, end = event.start_mark, event.end_mark
    scalar = isinstance(event, yaml.ScalarEvent | yaml.AliasEvent)
    length = end.column - start.column if scalar and end.line == start.line else 1
    return NodePosition(start.line + 1, start.column + 1, max(length, 1))


def _spelling(value: float) -> str:
    # Python refuses to print whole numbers of more than 4300 digits, which hexadecimal ones can have.
    return "" if isinstance(value, int) and value.bit_length() > 1024 else str(value)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
