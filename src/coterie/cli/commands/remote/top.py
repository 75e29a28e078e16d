"""The options of `coterie top`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs.options import ConfigOption, DebugOption, LevelsOption, TopologyOption
from coterie.cli.inputs.parameters import with_options
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
            help="Read a snapshot, a cluster file or context:NAME instead of a service; - reads standard input.",
        ),
    ] = None
    config: ConfigOption = None
    levels: LevelsOption = None
    topology: TopologyOption = None
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(TopOptions)
def top(options: TopOptions) -> None:
    """Show GPUs and nodes in use and free, by pool and domain, and the largest users.

    Shows the nodes of a file or a live cluster with --cluster, otherwise those of a service.

    \b
    Examples:
      coterie top
      coterie top --pool gb200 --level rack --watch
      # without a service
      coterie top --cluster examples/refusals/cluster.yaml
      kubectl get nodes,pods -A -o json | coterie top -c - -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    if options.cluster is None:
        with service_client(options.service, options.output, debug=options.debug) as client:
            from coterie.cli.handlers.remote.top import run as run_remote

            if options.levels is not None or options.topology is not None:
                raise UsageError("--levels and --topology need --cluster", "A service knows the levels of its pools.")
            run_remote(client, options)
        return
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.inspection.top import run

        if options.watch:
            raise UsageError(
                "--watch needs a service and cannot be used with --cluster", "Remove one of the two options."
            )
        run(options)
