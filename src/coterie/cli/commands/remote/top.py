"""The options of `coterie top`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import asking
from coterie.cli.inputs.options import ConfigOption, DebugOption, LevelsOption, TopologyOption
from coterie.cli.inputs.parameters import takes
from coterie.cli.inputs.service_options import OutputOption, PoolNameOption, ServiceOptions, WatchOption
from coterie.cli.output.formats import Output
from coterie.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    """A call of `coterie top` as it was written."""

    level: Annotated[
        str | None, typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level only.")
    ] = None
    pool: PoolNameOption = None
    watch: WatchOption = False
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="Look at a snapshot, a cluster file or context:NAME instead of a service; - is standard input.",
        ),
    ] = None
    config: ConfigOption = None
    levels: LevelsOption = None
    topology: TopologyOption = None
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@takes(TopOptions)
def top(options: TopOptions) -> None:
    """Show how many GPUs and nodes are in use and free, per pool and per domain, and who uses most.

    With --cluster it is about the nodes of a file or of a live cluster; otherwise about those of a service.

    \b
    Examples:
      coterie top
      coterie top --pool gb200 --level rack --watch
      # without a service
      coterie top --cluster examples/refusals/cluster.yaml
      kubectl get nodes,pods -A -o json | coterie top -c - -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    if options.cluster is None:
        with asking(options.service, options.output, debug=options.debug) as client:
            from coterie.cli.handlers.remote.top import run as run_remote

            if options.levels is not None or options.topology is not None:
                raise UsageError(
                    "--levels and --topology are for --cluster", "A service knows the levels of its pools."
                )
            run_remote(client, options)
        return
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.top import run

        if options.watch:
            raise UsageError("--watch follows a service, not --cluster", "Leave out one of the two.")
        run(options)
