"""The options of `coterie map`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, SourceArgument
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.drawing_formats import Drawing

EXIT_CODES = exit_code_help()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """A call of `coterie map` as it was written."""

    argument: SourceArgument = None
    level: Annotated[
        str | None,
        typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level. Default: the finest."),
    ] = None
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="Highlight what this holder of GPUs uses.")
    ] = None
    free: Annotated[bool, typer.Option("--free", help="Show what is free instead of what is used.")] = False
    source: ClusterOptions
    output: Annotated[Drawing, typer.Option("--output", "-o", help="How to print the map.")] = Drawing.TABLE
    web: Annotated[bool, typer.Option("--web", help="Open the map in a browser; Ctrl-C ends it.")] = False
    debug: DebugOption = False


@with_options(MapOptions)
def map_(options: MapOptions) -> None:
    """Draw zones, racks, nodes and GPUs, and who holds them.

    \b
    Examples:
      kubectl get nodes,pods -A -o json | coterie map -
      coterie map examples/06-training-4x4x4/cluster.yaml --workload rl-5
      coterie map examples/06-training-4x4x4/cluster.yaml -o svg > map.svg
      coterie map examples/06-training-4x4x4/cluster.yaml --web
      # what a service runs
      coterie pool map gb200
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output.plain, debug=options.debug):
        from coterie.cli.handlers.inspection.map import run
        from coterie.cli.inputs.source import only_one
        from coterie.cli.output.map import View

        view = View(options.level, options.workload, options.free)
        run(only_one(options.argument, options.source), view, options.output, web=options.web)
