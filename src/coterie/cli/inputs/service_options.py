"""The options of commands that use or run a service; imports little, since every command loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs import completion
from coterie.cli.inputs.options import DebugOption
from coterie.cli.output.formats import Output

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Keep showing changes as they happen.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Keep following until the end.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
LabelOption = Annotated[
    tuple[str, ...], typer.Option("--label", metavar="KEY=VALUE", help="A label of the workflow. May be repeated.")
]
PoolNameOption = Annotated[
    str | None,
    typer.Option("--pool", "-p", metavar="NAME", help="Pool of the service.", autocompletion=completion.pools),
]
ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes", min=1, metavar="N", show_default=True, help="Maximum number of tasks that run at a time."
    ),
]
WorkflowArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The workflow, such as train-7.", autocompletion=completion.workflows)
]
TaskArgument = Annotated[
    str,
    typer.Argument(metavar="ID[/TASK]", help="A workflow, or one task of it.", autocompletion=completion.tasks),
]
PoolArgument = Annotated[str, typer.Argument(metavar="NAME", help="The pool.", autocompletion=completion.pools)]

CLIENT_WORDS = {Exit.FAILED: "refused or unexpected error", Exit.TRY_AGAIN: "the service does not answer"}
CLIENT_EXIT_CODES = exit_code_help(Exit.CONFLICT, words=CLIENT_WORDS)
FOLLOWER_EXITS = (Exit.CONFLICT, Exit.WORK_FAILED, Exit.WORK_CANCELLED)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options that select the service and the caller's identity."""

    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            envvar="COTERIE_SERVER",
            help="URL of the service. Default: the one on this machine.",
        ),
    ] = None
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", envvar="COTERIE_TOKEN", help="Token to authenticate with."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """A call without other options than those of every client of a service, as it was written."""

    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQueryOptions(QueryOptions):
    """Such a call about one pool."""

    name: PoolArgument


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """The options of a service's files and database."""

    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="DIR",
            envvar="COTERIE_STATE",
            help="Folder of the service. Default: ~/.local/state/coterie.",
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            envvar="COTERIE_STORE",
            help="Database of the service. Default: a file in its folder.",
        ),
    ] = None
