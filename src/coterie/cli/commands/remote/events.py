"""The options of `coterie events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs import completion
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import FollowOption, OutputOption, ServiceOptions
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsOptions:
    """A call of `coterie events` as it was written."""

    workflow: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Only events of this workflow.", autocompletion=completion.workflows),
    ] = None
    follow: FollowOption = False
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only events after this number.")] = 0
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(EventsOptions)
def events(options: EventsOptions) -> None:
    """Print events in order; with --follow and JSON, one object per line.

    \b
    Examples:
      coterie events train-7
      coterie events --follow -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.events import run

        run(client, options)
