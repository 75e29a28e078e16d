"""The options of `coterie pool` and `coterie topology`. Light: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.client.call import asking
from coterie.cli.help import Listed
from coterie.cli.inputs.completion import pools
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.service_options import CLIENT_HELP, OutputOption, ServerOption, TokenOption, YesOption
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.formats import Output

PoolArgument = Annotated[str, typer.Argument(metavar="NAME", help="The pool.", autocompletion=pools)]

_POOL = """List, show, draw, apply and delete the pools of a service.

\b
Examples:
  coterie pool list
  coterie pool show gb200
"""
_TOPOLOGY = """List and show the levels of pools, with their domains.

\b
Examples:
  coterie topology list
  coterie topology show gb200
"""

pool = typer.Typer(help=_POOL, cls=Listed, epilog=CLIENT_HELP, no_args_is_help=True)
topology = typer.Typer(help=_TOPOLOGY, cls=Listed, epilog=CLIENT_HELP, no_args_is_help=True)


@pool.command("list", epilog=CLIENT_HELP)
def pool_list(
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """List pools with their GPUs and levels.

    \b
    Examples:
      coterie pool list
      coterie pool list -o wide
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import list_pools

        list_pools(client, output)


@pool.command("show", epilog=CLIENT_HELP)
def pool_show(
    name: PoolArgument,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show a pool: its quota, its levels with their labels, and how many domains there are.

    \b
    Examples:
      coterie pool show gb200
      coterie pool show gb200 -o yaml
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import show_pool

        show_pool(client, name, output)


@pool.command("apply", epilog=CLIENT_HELP)
def pool_apply(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="One pool, or `pools:` with several; - reads standard input.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The pool, where the file does not name it.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do; change nothing.")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Make or change pools, and name the workflows that lose a level by it.

    \b
    Examples:
      coterie pool apply pools.yaml --dry-run
      coterie pool show gb200 -o json | jq .document | coterie pool apply - --name gb200-copy
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import apply

        apply(client, file, name, output, dry_run=dry_run)


@pool.command("delete", epilog=CLIENT_HELP)
def pool_delete(
    name: PoolArgument,
    yes: YesOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Delete a pool that no workflow uses.

    \b
    Examples:
      coterie pool delete old
      coterie pool delete old --server http://127.0.0.1:8720
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import delete

        delete(client, name, output, yes=yes)


@pool.command("map", epilog=CLIENT_HELP)
def pool_map(
    name: PoolArgument,
    level: Annotated[
        str | None,
        typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level. Default: the finest."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="ID", help="Make what this workflow has stand out.")
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Show what is free, and where, instead of what is used.")
    ] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: Annotated[Drawing, typer.Option("--output", "-o", help="How to print the map.")] = Drawing.TABLE,
    debug: DebugOption = False,
) -> None:
    """Draw the nodes of a pool as they are now, and who holds them.

    \b
    Examples:
      coterie pool map gb200
      coterie pool map gb200 --workload train-7 -o svg > map.svg
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output.plain, debug=debug) as client:
        from coterie.cli.handlers.remote.pool_map import draw_pool
        from coterie.cli.output.map import View

        draw_pool(client, name, View(level, workload, free), output)


@topology.command("list", epilog=CLIENT_HELP)
def topology_list(
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """List the levels of every pool, with the labels that say where a node is.

    \b
    Examples:
      coterie topology list
      coterie topology list -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import list_topologies

        list_topologies(client, output)


@topology.command("show", epilog=CLIENT_HELP)
def topology_show(
    name: PoolArgument,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show the levels of a pool and every domain, with its nodes and GPUs.

    \b
    Examples:
      coterie topology show gb200
      coterie topology show gb200 -o name
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.pool import show_topology

        show_topology(client, name, output)
