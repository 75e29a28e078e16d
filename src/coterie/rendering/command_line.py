"""Command lines as messages and hints show them."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.placement.option import Option


def call(command: str, arguments: Iterable[str], options: Iterable[Option] = ()) -> list[str]:
    """Return the words of a call of a command: its arguments, then its options in the given order."""
    return ["coterie", *command.split(), *map(_argument, arguments), *words(options)]


def words(options: Iterable[Option]) -> list[str]:
    """Return the words of options, to be added to a command."""
    return [word for option in options for word in _words(option)]


def _argument(text: str) -> str:
    # A name that begins with a dash would be parsed as an option; ./ prevents that. A dash alone is standard input.
    return f"./{text}" if text.startswith("-") and text != "-" else text


def _words(option: Option) -> list[str]:
    name = f"--{option.name.replace('_', '-')}"
    return [name] if option.value is None else [name, option.value]
