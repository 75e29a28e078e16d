"""Manifests as text: YAML with a document for each, or one JSON List, both for `kubectl apply -f -`.

The YAML is written here and not by a library, so that it is the same everywhere: no anchors, keys in their order, and
quotes around every text that any reader of YAML 1.1 or 1.2 could take for something else, such as `1e3` or `on`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?:[:=@][A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def to_yaml(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Return manifests as a stream of YAML documents."""
    return "---\n".join("".join(f"{line}\n" for line in _lines(manifest)) for manifest in manifests)


def to_json(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Return manifests as one List, with characters beyond ASCII escaped, so that they cannot control a terminal."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"


def _lines(value: object) -> Iterator[str]:
    """Yield the lines of a mapping or a list in block style."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _entry(f"{_scalar(key)}:", below, nested="  " if isinstance(below, Mapping) else "")
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping | list) and item:
                first, *rest = _lines(item)
                yield f"- {first}"
                yield from (f"  {line}" if line else "" for line in rest)
            else:
                yield from _entry("-", item, nested="  ")


def _entry(head: str, value: object, nested: str) -> Iterator[str]:
    if isinstance(value, Mapping | list) and value:
        yield head
        yield from (f"{nested}{line}" if line else "" for line in _lines(value))
    elif isinstance(value, str) and _as_block(value):
        body = value.removesuffix("\n")
        yield f"{head} |{'' if value.endswith(chr(10)) else '-'}"
        yield from (f"  {line}" if line else "" for line in body.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _as_block(text: str) -> bool:
    """Return whether a text is best written as a block; unusual blanks and empty ends are safer in quotes."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or not lines[0].strip() or not lines[-1].strip() or lines[0][0] in " \t":
        return False
    return all((not line or line.strip(" \t")) and line.replace("\t", "").isprintable() for line in lines)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        if value.isprintable() and ('"' in value or "\\" in value):
            return f"'{value.replace(chr(39), chr(39) * 2)}'"
        return f'"{"".join(_escaped(char) for char in value)}"'
    return json.dumps(value)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
