"""The options of `coterie pool`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.help import CommandList
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import (
    CLIENT_EXIT_CODES,
    OutputOption,
    PoolArgument,
    PoolQueryOptions,
    QueryOptions,
    ServiceOptions,
    YesOption,
)
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.formats import Output

_HELP = """List, show, draw, apply and delete the pools of a service.

\b
Examples:
  coterie pool list
  coterie pool show gb200
"""

pool = typer.Typer(help=_HELP, cls=CommandList, epilog=CLIENT_EXIT_CODES, no_args_is_help=True)


@pool.command("list", epilog=CLIENT_EXIT_CODES)
@with_options(QueryOptions)
def pool_list(options: QueryOptions) -> None:
    """List pools with their GPUs and levels.

    \b
    Examples:
      coterie pool list
      coterie pool list -o wide
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.pool import list_pools

        list_pools(client, options.output)


@pool.command("show", epilog=CLIENT_EXIT_CODES)
@with_options(PoolQueryOptions)
def pool_show(options: PoolQueryOptions) -> None:
    """Show a pool: its quota, its levels with their labels, and how many domains there are.

    \b
    Examples:
      coterie pool show gb200
      coterie pool show gb200 -o yaml
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.pool import show_pool

        show_pool(client, options.name, options.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolApplyOptions:
    """A call of `coterie pool apply` as it was written."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file with one pool, or with several under `pools:`; - reads standard input."
        ),
    ]
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the pool, if the file does not give it.")
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")] = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@pool.command("apply", epilog=CLIENT_EXIT_CODES)
@with_options(PoolApplyOptions)
def pool_apply(options: PoolApplyOptions) -> None:
    """Create or change pools, and list the workflows that lose a level.

    \b
    Examples:
      coterie pool apply pools.yaml --dry-run
      coterie pool show gb200 -o json | jq .document | coterie pool apply - --name gb200-copy
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.pool import apply

        apply(client, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDeleteOptions:
    """A call of `coterie pool delete` as it was written."""

    name: PoolArgument
    yes: YesOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@pool.command("delete", epilog=CLIENT_EXIT_CODES)
@with_options(PoolDeleteOptions)
def pool_delete(options: PoolDeleteOptions) -> None:
    """Delete a pool that no workflow uses.

    \b
    Examples:
      coterie pool delete old
      coterie pool delete old --server http://127.0.0.1:8720
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.pool import delete

        delete(client, options.name, options.output, yes=options.yes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMapOptions:
    """A call of `coterie pool map` as it was written."""

    name: PoolArgument
    level: Annotated[
        str | None,
        typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level. Default: the finest."),
    ] = None
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="ID", help="Highlight what this workflow holds.")
    ] = None
    free: Annotated[bool, typer.Option("--free", help="Show what is free instead of what is used.")] = False
    service: ServiceOptions
    output: Annotated[Drawing, typer.Option("--output", "-o", help="How to print the map.")] = Drawing.TABLE
    debug: DebugOption = False


@pool.command("map", epilog=CLIENT_EXIT_CODES)
@with_options(PoolMapOptions)
def pool_map(options: PoolMapOptions) -> None:
    """Draw the nodes of a pool as they are now, and who holds them.

    \b
    Examples:
      coterie pool map gb200
      coterie pool map gb200 --workload train-7 -o svg > map.svg
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output.plain, debug=options.debug) as client:
        from coterie.cli.handlers.remote.pool_map import draw_pool
        from coterie.cli.output.map import View

        view = View(options.level, options.workload, options.free)
        draw_pool(client, options.name, view, options.output)
