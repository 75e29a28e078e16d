"""The options of `coterie run`, `coterie serve` and `coterie token`. Light: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from coterie.backends.local.defaults import DEFAULT_PROCESSES
from coterie.cli.exit_codes import Exit, told
from coterie.cli.help import Listed
from coterie.cli.inputs.options import (
    ClusterOption,
    ConfigOption,
    DebugOption,
    LevelsOption,
    PoolOption,
    SetOption,
    SetStringOption,
    TopologyOption,
)
from coterie.cli.inputs.service_options import CLIENT_HELP, OutputOption, StateOption, StoreOption
from coterie.cli.output.formats import Output

RUN_HELP = told(
    words={
        Exit.DONE: "the workflow completed",
        Exit.MUST_WAIT: "it waits for room that nobody will make",
        Exit.NEVER_FITS: "it can never fit",
        Exit.WORK_FAILED: "it failed",
        Exit.WORK_CANCELLED: "it was cancelled",
    }
)
SERVE_HELP = told(words={Exit.DONE: "stopped", Exit.TRY_AGAIN: "address taken"})

ProcessesOption = Annotated[
    int,
    typer.Option("--processes", min=1, metavar="N", show_default=True, help="Most tasks that run at a time."),
]


def run(
    file: Annotated[str, typer.Argument(help="A workflow file; - reads standard input.", metavar="FILE")],
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    sets: SetOption = None,
    set_strings: SetStringOption = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="DIR", help="Keep logs and results in this folder. Default: nothing is kept."),
    ] = None,
    processes: ProcessesOption = DEFAULT_PROCESSES,
    logs: Annotated[bool, typer.Option("--logs", help="Print what tasks write as they write it.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing until the result is there.")] = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Run a workflow here, each task a process, placed as on the cluster that is named; nothing has to be installed.

    Shows what happens until the workflow ends, then where its tasks ran and whether that is what was asked for. Without
    --cluster and --config the cluster is this machine. On a terminal, Ctrl-C asks what to do: stop it, continue, or,
    with --state, detach. Elsewhere it stops the workflow; a second one kills its tasks.

    \b
    Examples:
      coterie run examples/00-hello-rack/workflow.yaml --cluster examples/00-hello-rack/cluster.yaml
      # in a pool of a configuration, with a template value, and the tasks' output
      coterie run train.yaml --config coterie.yaml --pool gb200 --set steps=10 --logs
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.handlers.run import Ask
        from coterie.cli.handlers.run import run as go
        from coterie.cli.inputs.source import Source
        from coterie.cli.inputs.submission import Call

        source = Source(cluster, config, pool, levels, topology)
        call = Call(file, source, tuple(sets or ()), tuple(set_strings or ()))
        go(Ask(call, state, logs, quiet, output, processes))


def serve(
    config: ConfigOption = None,
    state: StateOption = None,
    store: StoreOption = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8720,
    names: Annotated[
        list[str] | None,
        typer.Option("--host-name", metavar="NAME", help="Another name under which it is reached. May be repeated."),
    ] = None,
    processes: ProcessesOption = DEFAULT_PROCESSES,
    debug: DebugOption = False,
) -> None:
    """Start the service: pools, a queue, the API, and tasks as processes of this machine. Prints its URL.

    Only this machine reaches it, unless there are tokens: see coterie token create.

    \b
    Examples:
      coterie serve
      coterie serve --config coterie.yaml --host 0.0.0.0 --store postgresql://coterie@db/coterie
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(Output.TABLE, debug=debug):
        from coterie.cli.handlers.serve import Ask
        from coterie.cli.handlers.serve import run as go

        go(Ask(config, state, store, host, port, tuple(names or ()), processes))


_TOKENS = """Make, list and delete the tokens that callers of the service show.

\b
Examples:
  coterie token create alice --role user
  coterie token list
"""

token = typer.Typer(help=_TOKENS, cls=Listed, epilog=CLIENT_HELP, no_args_is_help=True)


@token.command("create", epilog=CLIENT_HELP)
def token_create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will use it; also the owner of their workflows.")],
    role: Annotated[
        Literal["viewer", "user", "admin"],
        typer.Option("--role", help="viewer looks, user also submits, admin does everything."),
    ] = "user",
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="For how long it is good, such as 90d.")
    ] = None,
    state: StateOption = None,
    store: StoreOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Make a token and print it. It is shown this once; the service keeps a hash of it.

    \b
    Examples:
      coterie token create ana --role admin
      export COTERIE_TOKEN=$(coterie token create ci --role user --expires 90d)
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.handlers.token import create

        create(name, role, expires, (state, store), output)


@token.command("list", epilog=CLIENT_HELP)
def token_list(
    state: StateOption = None,
    store: StoreOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """List tokens by name, never the tokens themselves.

    \b
    Examples:
      coterie token list
      coterie token list -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.handlers.token import list_all

        list_all((state, store), output)


@token.command("delete", epilog=CLIENT_HELP)
def token_delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")],
    state: StateOption = None,
    store: StoreOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Delete a token; it opens nothing from then on.

    \b
    Examples:
      coterie token delete ci
      coterie token delete ci --store postgresql://coterie@db/coterie
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.handlers.token import delete

        delete(name, (state, store), output)
