"""The options of `coterie topology`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.help import CommandList
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES, PoolQueryOptions, QueryOptions

_HELP = """List and show the levels of pools, with their domains, and who uses a topology.

\b
Examples:
  coterie topology list
  coterie topology show gb200
  coterie topology users hall-a --cluster context:prod
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyUsersOptions(QueryOptions):
    """A call of `coterie topology users` as it was written."""

    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The ClusterTopology; of a service, the pool whose levels are meant.")
    ]
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="context:NAME for a live cluster, a file of Kubernetes objects, or - for standard input. "
            "Default: ask the service.",
        ),
    ] = None
    new: Annotated[
        str | None,
        typer.Option("--new", metavar="FILE", help="The topology as it would be; its effects are shown."),
    ] = None
    delete: Annotated[bool, typer.Option("--delete", help="Show what deleting the topology would do.")] = False


@topology.command("users", epilog=CLIENT_EXIT_CODES)
@with_options(TopologyUsersOptions)
def topology_users(options: TopologyUsersOptions) -> None:
    """Show who refers to a topology, at which levels, and what a change of it would do.

    Nothing is changed. Of a cluster, users are PodCliqueSets, graph deployments and PodGroups; of a service, the
    groups of unfinished workflows.

    \b
    Examples:
      coterie topology users hall-a --cluster context:prod
      coterie topology users hall-a --cluster context:prod --new new.yaml
      coterie topology users hall-a --cluster objects.json --delete -o json
      coterie topology users gb200
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    if options.cluster is None:
        with service_client(options.service, options.output, debug=options.debug) as client:
            from coterie.cli.handlers.remote.topology import show_users

            show_users(client, options)
        return
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.inspection.topology_users import run

        run(options)
