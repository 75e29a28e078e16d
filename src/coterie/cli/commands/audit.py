"""The options of `coterie audit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(
    words={
        Exit.DONE: "all requirements hold, whether preferences are met or not",
        Exit.MUST_WAIT: "a gang is incomplete, or a running task cannot be checked",
        Exit.NEVER_FITS: "something is VIOLATED",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """A call of `coterie audit` as it was written."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="JSON of `kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json`, "
            "- for standard input, or context:NAME for a live cluster.",
        ),
    ]
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the findings.")] = Output.TABLE
    debug: DebugOption = False


@with_options(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Compare where the tasks of each gang run with what was requested: held, missed, VIOLATED, unobservable.

    \b
    Examples:
      coterie audit context:prod
      kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json | coterie audit -
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.inspection.audit import run

        run(options.source, options.output)
