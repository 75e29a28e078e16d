"""The options of `coterie cancel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs import completion
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import OutputOption, ServiceOptions, YesOption
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOptions:
    """A call of `coterie cancel` as it was written."""

    workflows: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="ID...", help="Workflows, such as train-7.", autocompletion=completion.active_workflows),
    ]
    message: Annotated[
        str, typer.Option("--message", "-m", metavar="TEXT", help="Reason, shown with the workflow.")
    ] = ""
    force: Annotated[bool, typer.Option("--force", help="Kill the tasks at once instead of asking them to stop.")] = (
        False
    )
    yes: YesOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(CancelOptions)
def cancel(options: CancelOptions) -> None:
    """Cancel workflows; for several, ask for confirmation on a terminal.

    \b
    Examples:
      coterie cancel train-7 -m "wrong learning rate"
      coterie list --active --owner ana -o name | xargs coterie cancel
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.changes import cancel_all

        cancel_all(client, options)
