"""The options of `coterie list`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import LabelOption, OutputOption, PoolNameOption, ServiceOptions, WatchOption
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """A call of `coterie list` as it was written."""

    statuses: Annotated[
        tuple[str, ...],
        typer.Option("--status", metavar="STATUS", help="Only this status, such as RUNNING. May be repeated."),
    ] = ()
    pool: PoolNameOption = None
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only workflows of this user.")] = None
    name: Annotated[str, typer.Option("--name", metavar="PREFIX", help="Only names with this prefix.")] = ""
    labels: LabelOption = ()
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only workflows submitted within this time, such as 2h."),
    ] = None
    active: Annotated[bool, typer.Option("--active", help="Only workflows that have not finished.")] = False
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, metavar="N", help="Show at most N.")] = 50
    watch: WatchOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(ListOptions)
def list_(options: ListOptions) -> None:
    """List workflows, the newest first: where they run, or why they wait.

    \b
    Examples:
      coterie list --active --watch
      coterie list --pool gb200 --status FAILED --since 24h -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.list import run

        run(client, options)
