"""Column types with the same content on SQLite and Postgres."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

LARGEST = 2**63 - 1

# SQLite assigns row ids only in a column of type INTEGER; it holds 64 bits there too.
Number = BigInteger().with_variant(Integer(), "sqlite")


class SafeText(TypeDecorator[str]):
    """Text of any origin; characters that a database cannot hold (NUL, lone surrogates) become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the storable form of a text, for writes and for lookups."""
        del dialect
        return value if value is None or (value.isascii() and "\0" not in value) else storable(value)


def storable(text: str) -> str:
    """Return text that every database accepts."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dumps(value: Any) -> str:  # noqa: ANN401 - JSON is of any shape
    """Return a value as JSON for a column."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(json.loads(storable(json.dumps(value, ensure_ascii=False)))).decode()


def loads(text: str | bytes) -> Any:  # noqa: ANN401 - JSON is of any shape
    """Return the value of JSON in a column."""
    return msgspec.json.decode(text)
