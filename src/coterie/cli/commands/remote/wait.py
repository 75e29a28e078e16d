"""The options of `coterie wait`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import (
    CLIENT_WORDS,
    FOLLOWER_EXITS,
    OutputOption,
    ServiceOptions,
    WorkflowArgument,
)
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(*FOLLOWER_EXITS, Exit.TIMED_OUT, words=CLIENT_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """A call of `coterie wait` as it was written."""

    workflow: WorkflowArgument
    wanted: Annotated[
        str, typer.Option("--for", metavar="WORD", help="finished, placed, running, completed, or another status.")
    ] = "finished"
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Stop waiting after this time, such as 10m. Default: never."),
    ] = None
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(WaitOptions)
def wait(options: WaitOptions) -> None:
    """Wait until a workflow is placed, runs, or has finished.

    \b
    Examples:
      coterie wait train-7
      coterie wait train-7 --for=placed --timeout=10m
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.wait import run

        run(client, options.workflow, options.wanted, options.timeout, options.output)
