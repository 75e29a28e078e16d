"""Output formats, and text that is safe for a terminal."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """The format of results."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def safe(text: str) -> str:
    """Return text with control characters made visible, since names in a file must not control the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
