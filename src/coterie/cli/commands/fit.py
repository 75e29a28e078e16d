"""The options of `coterie fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, SourceArgument
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """A call of `coterie fit` as it was written."""

    argument: SourceArgument = None
    gpus: Annotated[int, typer.Option("--gpus", min=0, max=1 << 20, help="GPUs of one task.")] = 0
    level: Annotated[
        str | None, typer.Option("--level", "-l", metavar="LEVEL", help="The level whose domain a gang shares.")
    ] = None
    cpu: Annotated[str | None, typer.Option("--cpu", metavar="C", help="Processors of one task: 16, 500m.")] = None
    memory: Annotated[str | None, typer.Option("--memory", metavar="M", help="Memory of one task: 256Gi.")] = None
    tasks: Annotated[
        int | None,
        typer.Option("--tasks", min=1, max=1 << 30, metavar="K", help="Count gangs of this many tasks as well."),
    ] = None
    source: ClusterOptions
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")] = Output.TABLE
    debug: DebugOption = False


@with_options(FitOptions)
def fit(options: FitOptions) -> None:
    """Show the largest gang of equal tasks that fits in each domain of a level, now and on the empty cluster.

    \b
    Examples:
      coterie fit --gpus 8 --level rack examples/refusals/cluster.yaml
      kubectl get nodes,pods -A -o json | coterie fit --gpus 4 --memory 256Gi --level zone --tasks 16 -
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.fit import run
        from coterie.cli.inputs.source import only_one
        from coterie.planning.fit import FitQuery

        query = FitQuery(options.gpus, options.cpu, options.memory, options.tasks)
        run(only_one(options.argument, options.source), options.level, query, options.output)
