"""The lists of commands in help texts: each with the whole of its first sentence, those of `coterie` in groups."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

PANELS: Mapping[str, Sequence[str]] = {
    "Plan and look, on files and clusters": (
        "plan",
        "validate",
        "explain",
        "render",
        "check",
        "audit",
        "map",
        "fit",
        "simulate",
    ),
    "Run here": ("run",),
    "Run a service": ("serve", "token"),
    "Ask a service": (
        "submit",
        "list",
        "show",
        "why",
        "top",
        "logs",
        "events",
        "wait",
        "cancel",
        "retry",
        "delete",
        "pool",
        "topology",
    ),
}


class Listed(TyperGroup):
    """Commands whose help shows what each is for, uncut."""

    def panels(self) -> Mapping[str, Sequence[str]]:
        """Return the names of commands by the title above them."""
        return {"Commands": tuple(self.commands)}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer keeps these types to itself
        """Write the commands of each panel."""
        for title, names in self.panels().items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, _first_words(command.help)) for name, command in found if command])


class Grouped(Listed):
    """The commands of `coterie` itself, by what they need."""

    def panels(self) -> Mapping[str, Sequence[str]]:
        """Return the names of commands by the title above them."""
        return PANELS


def _first_words(text: str | None) -> str:
    """Return the first paragraph of a help text on one line, without its full stop."""
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split()).removesuffix(".")
