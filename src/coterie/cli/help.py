"""The lists of commands in help texts: each with its whole first sentence, those of `coterie` in groups."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from typer._click.core import Command
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer._click.shell_completion import CompletionItem
from typer._click.utils import make_default_short_help
from typer.core import TyperGroup

from coterie.cli.command_table import PANELS, LazyCommands
from coterie.cli.exit_codes import Exit


class CommandList(TyperGroup):
    """A command group whose help shows each command's summary, uncut."""

    def panels(self) -> Mapping[str, Mapping[str, str]]:
        """Return the summaries of commands, by the title above them and by name."""
        return {"Commands": {name: first_paragraph(command.help) for name, command in self.commands.items()}}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - Typer's own types
        """Write the commands of each panel."""
        for title, summaries in self.panels().items():
            with formatter.section(title):
                formatter.write_dl([*summaries.items()])


class CommandGroups(CommandList):
    """The commands of `coterie` itself, by their requirements; a wrong call is reported like every other error."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as Typer gives them
        super().__init__(**options)
        self.commands = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - Typer's own types
        """Return the names of all commands, without loading them."""
        return list(self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401 - Typer's own types
        """Return the commands and options that a word may become, without loading any command."""
        summaries = {name: summary for panel in self.panels().values() for name, summary in panel.items()}
        found = [
            CompletionItem(name, help=make_default_short_help(summary))
            for name, summary in summaries.items()
            if name.startswith(incomplete)
        ]
        return [*found, *Command.shell_complete(self, ctx, incomplete)]

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

    def panels(self) -> Mapping[str, Mapping[str, str]]:
        """Return the summaries of commands, by the title above them and by name."""
        return {title: {name: entry.summary for name, entry in panel.items()} for title, panel in PANELS.items()}


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a help text on one line, without its full stop."""
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split()).removesuffix(".")
