"""The options of `coterie serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.backends.base.settings import DEFAULT_PROCESSES
from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import ConfigOption, DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import ProcessesOption, StorageOptions
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(words={Exit.DONE: "stopped", Exit.TRY_AGAIN: "address taken"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """A call of `coterie serve` as it was written."""

    config: ConfigOption = None
    storage: StorageOptions
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8720
    names: Annotated[
        tuple[str, ...],
        typer.Option("--host-name", metavar="NAME", help="Another host name of the service. May be repeated."),
    ] = ()
    processes: ProcessesOption = DEFAULT_PROCESSES
    task_accounts: Annotated[
        str | None,
        typer.Option(
            "--task-accounts",
            metavar="FIRST-LAST|USER",
            help="User ids that tasks run under, one for each person, or one user for all. Needs root.",
        ),
    ] = None
    trust_tasks: Annotated[
        bool,
        typer.Option("--trust-tasks", help="Let tasks of several people run as the user of the service."),
    ] = False
    debug: DebugOption = False


@with_options(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Start the service and print its URL.

    It has pools, a queue and an API, and runs tasks as processes of this machine. Without tokens it can be reached from
    this machine only, and every user of this machine may do everything: see coterie token create.

    As root, tasks of callers with a token run under accounts of their own. As another user, it refuses to start once
    several people have tokens, unless --trust-tasks says that their tasks may do whatever the service can.

    \b
    Examples:
      coterie serve
      coterie serve --config coterie.yaml --host 0.0.0.0 --store postgresql://coterie@db/coterie
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(Output.TABLE, debug=options.debug):
        from coterie.cli.handlers.serve import run

        run(options)
