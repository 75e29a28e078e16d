"""Options of the commands that talk to a service. Light on purpose: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.output import Output

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="COTERIE_SERVER",
        help="Where the service is. Default: the one that runs on this machine.",
    ),
]
TokenOption = Annotated[
    str | None, typer.Option("--token", metavar="TOKEN", envvar="COTERIE_TOKEN", help="Who you are, to the service.")
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", envvar="COTERIE_STATE", help="Folder of the service. Default: ~/.local/state/coterie."
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", envvar="COTERIE_STORE", help="Database of the service. Default: a file in its folder."
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Go on and show changes as they happen.")]
WorkflowArgument = Annotated[str, typer.Argument(metavar="ID", help="The workflow, such as train-7.")]

CLIENT_HELP = (
    "Exit codes: 0 done, 1 refused or unexpected error, 2 wrong usage, 3 invalid input, 4 not found, 5 not possible as "
    "things are, 75 the service does not answer, 130 interrupted."
)
FOLLOW_HELP = (
    "Exit codes: 0 done, 1 refused or unexpected error, 2 wrong usage, 3 invalid input, 4 not found, 5 not possible as "
    "things are, 75 the service does not answer, 100 the workflow failed, 103 it was cancelled, 130 interrupted."
)
