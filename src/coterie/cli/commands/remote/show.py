"""The options of `coterie show`."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.cli.client.call import service_client
from coterie.cli.exit_codes import exit_code_help
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import (
    CLIENT_WORDS,
    FOLLOWER_EXITS,
    OutputOption,
    ServiceOptions,
    WatchOption,
    WorkflowArgument,
)
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(*FOLLOWER_EXITS, words=CLIENT_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """A call of `coterie show` as it was written."""

    workflow: WorkflowArgument
    watch: WatchOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(ShowOptions)
def show(options: ShowOptions) -> None:
    """Show a workflow: its groups, where its tasks are, and whether that is what was asked for.

    \b
    Examples:
      coterie show train-7
      coterie show train-7 --watch
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.show import run

        run(client, options.workflow, options.output, watch=options.watch)
