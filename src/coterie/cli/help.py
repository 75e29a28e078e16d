"""The lists of commands in help texts: each with its whole first sentence, those of `coterie` in groups."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup

from coterie.cli.exit_codes import Exit

PANELS: Mapping[str, Sequence[str]] = {
    "Plan and inspect files and clusters": (
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
    "Run in a cluster": ("operator",),
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


class CommandList(TyperGroup):
    """A command group whose help shows each command's summary, uncut."""

    def panels(self) -> Mapping[str, Sequence[str]]:
        """Return the names of commands by the title above them."""
        return {"Commands": tuple(self.commands)}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer keeps these types to itself
        """Write the commands of each panel."""
        for title, names in self.panels().items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, _first_words(command.help)) for name, command in found if command])


class CommandGroups(CommandList):
    """The commands of `coterie` itself, by their requirements; a wrong call is reported like every other error."""

    def main(  # type: ignore[override] # how a call ends is decided here, whatever its caller asks for
        self,
        args: Sequence[str] | None = None,
        **options: Any,  # noqa: ANN401 - what the parser takes
    ) -> NoReturn:
        """Run the command that the arguments name, and exit with its code."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, **{**options, "standalone_mode": False})
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(Exit.USAGE)
        except UsageError as error:
            from coterie.cli.usage_errors import report_usage

            sys.exit(report_usage(error, self, given))
        sys.exit(code if isinstance(code, int) else Exit.DONE)

    def panels(self) -> Mapping[str, Sequence[str]]:
        """Return the names of commands by the title above them."""
        return PANELS


def _first_words(text: str | None) -> str:
    """Return the first paragraph of a help text on one line, without its full stop."""
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split()).removesuffix(".")
