"""The options of `coterie topology`."""

from __future__ import annotations

import typer

from coterie.cli.client.call import service_client
from coterie.cli.help import CommandList
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES, PoolQueryOptions, QueryOptions

_HELP = """List and show the levels of pools, with their domains.

\b
Examples:
  coterie topology list
  coterie topology show gb200
"""

topology = typer.Typer(help=_HELP, cls=CommandList, epilog=CLIENT_EXIT_CODES, no_args_is_help=True)


@topology.command("list", epilog=CLIENT_EXIT_CODES)
@with_options(QueryOptions)
def topology_list(options: QueryOptions) -> None:
    """List the levels of every pool, with the labels that say where a node is.

    \b
    Examples:
      coterie topology list
      coterie topology list -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.topology import list_topologies

        list_topologies(client, options.output)


@topology.command("show", epilog=CLIENT_EXIT_CODES)
@with_options(PoolQueryOptions)
def topology_show(options: PoolQueryOptions) -> None:
    """Show the levels of a pool and every domain, with its nodes and GPUs.

    \b
    Examples:
      coterie topology show gb200
      coterie topology show gb200 -o name
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.topology import show_topology

        show_topology(client, options.name, options.output)
