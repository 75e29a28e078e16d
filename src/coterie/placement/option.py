"""The option by which a person asks about a change, apart from the engine: clients of a service print it too."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """A parameter of a question, by the name that commands and requests know it by; a flag has no value."""

    name: str
    value: str | None = None
