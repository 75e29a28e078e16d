"""Options of the commands that talk to a service. Light on purpose: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, told
from coterie.cli.inputs.completion import workflows
from coterie.cli.output.formats import Output

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
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
WorkflowArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The workflow, such as train-7.", autocompletion=workflows)
]

_CLIENT = {Exit.FAILED: "refused or unexpected error", Exit.TRY_AGAIN: "the service does not answer"}
_FOLLOWER = (Exit.CONFLICT, Exit.WORK_FAILED, Exit.WORK_CANCELLED)

CLIENT_HELP = told(Exit.CONFLICT, words=_CLIENT)
FOLLOW_HELP = told(*_FOLLOWER, words=_CLIENT)
SUBMIT_HELP = told(
    *_FOLLOWER,
    words={
        **_CLIENT,
        Exit.MUST_WAIT: "--dry-run: something must wait",
        Exit.NEVER_FITS: "--dry-run: something can never fit",
    },
)
WAIT_HELP = told(*_FOLLOWER, Exit.TIMED_OUT, words=_CLIENT)
