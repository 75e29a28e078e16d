"""The options of `coterie simulate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help()


_POLICIES = "coterie,first-fit,kueue"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """A call of `coterie simulate` as it was written."""

    trace: Annotated[str, typer.Argument(help="A CSV file of jobs; - reads standard input.", metavar="TRACE")]
    source: ClusterOptions
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="LEVEL|none",
            help="Level at which each job must fit into one domain; none adds no constraints. "
            "Default: the finest level above nodes.",
        ),
    ] = None
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME,...", help="Policies to compare; the first is the baseline.")
    ] = _POLICIES
    window: Annotated[
        int,
        typer.Option(
            "--window", min=1, max=1_000_000, metavar="N", help="How many waiting jobs later ones may overtake."
        ),
    ] = 100
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Replay only the first N jobs.")] = (
        None
    )
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", help="Submit jobs X times as fast; run times stay the same.")
    ] = 1.0
    every: Annotated[
        float | None,
        typer.Option("--every", metavar="SECONDS", help="For a trace without times: seconds between submissions."),
    ] = None
    lasting: Annotated[
        float | None,
        typer.Option("--lasting", metavar="SECONDS", help="For a trace without times: seconds that each job runs."),
    ] = None
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.svg", help="Draw use, queue and fragmentation over time.")
    ] = None
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the comparison.")] = Output.TABLE
    debug: DebugOption = False


@with_options(SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """Replay a trace of jobs on a cluster, and compare waits, GPU use and fragmentation between policies.

    No trace records topology constraints: --rule says which are added. Progress goes to standard error.

    \b
    Examples:
      coterie simulate examples/simulate/trace.csv --cluster examples/simulate/cluster.yaml
      # twice as busy, without constraints, and as a picture
      coterie simulate trace.csv --cluster cluster.yaml --speed 2 --rule none --plot simulation.svg
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.simulate import run

        run(options)
