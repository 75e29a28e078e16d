"""The options of `coterie retry`."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.cli.client.call import service_client
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import OutputOption, ServiceOptions, TaskArgument
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """A call of `coterie retry` as it was written."""

    target: TaskArgument
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(RetryOptions)
def retry(options: RetryOptions) -> None:
    """Retry a failed workflow, or one task of it.

    \b
    Examples:
      coterie retry train-7
      coterie retry train-7/worker-3
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.changes import retry_one

        retry_one(client, options.target, options.output)
