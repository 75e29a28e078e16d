"""The options of `coterie explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import exit_code_help
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """A call of `coterie explain` as it was written."""

    topic: Annotated[
        str | None,
        typer.Argument(
            help="A reason such as NoDomainFits, a warning such as DoesNotTile, or a field such as "
            "workflow.groups.tasks. Default: list them."
        ),
    ] = None
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the page.")] = Output.TABLE
    debug: DebugOption = False


@with_options(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Explain a reason for refusal, a warning, or a field of a workflow or of the configuration.

    \b
    Examples:
      coterie explain NoDomainFits
      coterie explain DoesNotTile
      coterie explain requirementType
      # all topics
      coterie explain
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.explain import run

        run(options.topic, options.output)
