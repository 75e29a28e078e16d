"""The options of `coterie topology`."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from coterie.cli.client.call import service_client
from coterie.cli.help import CommandList
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES, OutputOption, PoolArgument, ServiceOptions
from coterie.cli.output.formats import Output

_HELP = """List and show the levels of pools, with their domains.

\b
Examples:
  coterie topology list
  coterie topology show gb200
"""

topology = typer.Typer(help=_HELP, cls=CommandList, epilog=CLIENT_EXIT_CODES, no_args_is_help=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyListOptions:
    """A call of `coterie topology list` as it was written."""

    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@topology.command("list", epilog=CLIENT_EXIT_CODES)
@with_options(TopologyListOptions)
def topology_list(options: TopologyListOptions) -> None:
    """List the levels of every pool, with the labels that say where a node is.

    \b
    Examples:
      coterie topology list
      coterie topology list -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.topology import list_topologies

        list_topologies(client, options.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyShowOptions:
    """A call of `coterie topology show` as it was written."""

    name: PoolArgument
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@topology.command("show", epilog=CLIENT_EXIT_CODES)
@with_options(TopologyShowOptions)
def topology_show(options: TopologyShowOptions) -> None:
    """Show the levels of a pool and every domain, with its nodes and GPUs.

    \b
    Examples:
      coterie topology show gb200
      coterie topology show gb200 -o name
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.topology import show_topology

        show_topology(client, options.name, options.output)
