"""Column types that hold the same on SQLite and Postgres."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

LARGEST = 2**63 - 1

# SQLite counts rows only in a column that is called INTEGER; it holds 64 bits there too.
Number = BigInteger().with_variant(Integer(), "sqlite")


class Words(TypeDecorator[str]):
    """Text of any origin. What a database cannot hold (NUL, half a surrogate pair) becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return what can be stored, and so also what can be looked for."""
        del dialect
        return value if value is None or (value.isascii() and "\0" not in value) else storable(value)


def storable(text: str) -> str:
    """Return text that every database takes."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dumps(value: Any) -> str:  # noqa: ANN401 - JSON is of any shape
    """Write JSON for a column."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(json.loads(storable(json.dumps(value, ensure_ascii=False)))).decode()


def loads(text: str | bytes) -> Any:  # noqa: ANN401 - JSON is of any shape
    """Read JSON from a column."""
    return msgspec.json.decode(text)
