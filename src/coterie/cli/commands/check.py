"""The options of `coterie check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, SourceArgument
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(
    words={Exit.DONE: "no problems, or remarks only", Exit.MUST_WAIT: "warnings", Exit.NEVER_FITS: "errors"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """A call of `coterie check` as it was written."""

    argument: SourceArgument = None
    source: ClusterOptions
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the findings.")] = Output.TABLE
    debug: DebugOption = False


@with_options(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check whether node labels form the hierarchy that levels need, and whether a pool suits its cluster.

    Without levels, they are guessed from well-known labels.

    \b
    Examples:
      kubectl get nodes,pods -A -o json | coterie check -
      coterie check snapshot.json --levels zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack
      coterie check --config examples/coterie.yaml --pool shared
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.inspection.check import run
        from coterie.cli.inputs.source import only_one

        run(only_one(options.argument, options.source), options.output)
