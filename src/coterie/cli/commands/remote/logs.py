"""The options of `coterie logs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import FollowOption, OutputOption, ServiceOptions, TaskArgument
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsOptions:
    """A call of `coterie logs` as it was written."""

    target: TaskArgument
    follow: FollowOption = False
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="Number of the attempt. Default: the latest.")
    ] = None
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, metavar="N", help="Only the last N lines of each task.")
    ] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what was written within this time, such as 5m.")
    ] = None
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(LogsOptions)
def logs(options: LogsOptions) -> None:
    """Print the log of a task, or of all tasks of a workflow, each line prefixed with its task.

    \b
    Examples:
      coterie logs train-7 --tail 20
      coterie logs train-7/worker-0 --follow
      coterie logs train-7/worker-0 --attempt 1 > first.log
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.logs import run

        run(client, options)
