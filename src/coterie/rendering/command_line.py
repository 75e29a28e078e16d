"""Options as they are written on a command line."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.placement.option import Option


def words(options: Iterable[Option]) -> list[str]:
    """Return the words of options, to be added to a command."""
    return [word for option in options for word in _words(option)]


def _words(option: Option) -> list[str]:
    name = f"--{option.name.replace('_', '-')}"
    return [name] if option.value is None else [name, option.value]
