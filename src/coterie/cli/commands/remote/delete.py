"""The options of `coterie delete`."""

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
class DeleteOptions:
    """A call of `coterie delete` as it was written."""

    workflows: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="ID...", help="Workflows, such as train-7.", autocompletion=completion.ended_workflows),
    ]
    force: Annotated[bool, typer.Option("--force", help="Cancel workflows that have not ended, then delete them.")] = (
        False
    )
    yes: YesOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(DeleteOptions)
def delete(options: DeleteOptions) -> None:
    """Delete workflows that have ended, with their logs and outputs.

    With --force in any state, also if the service could not drive them: what runs is killed, what is held is freed.

    \b
    Examples:
      coterie delete train-7
      coterie list --status COMPLETED -o name | xargs coterie delete
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.changes import delete_all

        delete_all(client, options)
