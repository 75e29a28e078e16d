"""The options of `coterie submit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from coterie.cli.client.call import service_client
from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import DebugOption, TemplateOptions, WhatIfOptions
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import (
    CLIENT_WORDS,
    FOLLOWER_EXITS,
    FollowOption,
    LabelOption,
    OutputOption,
    PoolNameOption,
    ServiceOptions,
)
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(
    *FOLLOWER_EXITS,
    words={
        **CLIENT_WORDS,
        Exit.MUST_WAIT: "--dry-run: something must wait",
        Exit.NEVER_FITS: "something can never fit",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """A call of `coterie submit` as it was written."""

    file: Annotated[str, typer.Argument(help="A workflow file; - reads standard input.", metavar="FILE")]
    pool: PoolNameOption = None
    template: TemplateOptions
    priority: Annotated[
        Literal["HIGH", "NORMAL", "LOW"],
        typer.Option("--priority", case_sensitive=False, help="Priority in the queue."),
    ] = "NORMAL"
    labels: LabelOption = ()
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="Idempotency key: a repeated call with the same key creates no second workflow.",
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan with what is free now; submit nothing.")] = False
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="ID", help="Submit only if the plan with this id, from --dry-run, still holds."),
    ] = None
    what_if: WhatIfOptions
    force: Annotated[
        bool, typer.Option("--force", help="Queue it even if it can never run in its pool as it is now.")
    ] = False
    follow: FollowOption = False
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(SubmitOptions)
def submit(options: SubmitOptions) -> None:
    """Submit a workflow to the service and print its id.

    Options such as --prefer change the workflow; what they change is printed, and shown with it later. A workflow that
    can never run in its pool is refused, unless --force is given.

    \b
    Examples:
      coterie submit train.yaml --pool gb200 --set steps=1000
      # see where it would go, then submit it if that is still so
      coterie submit train.yaml --dry-run
      coterie submit train.yaml --plan 4f2a91c0
      # take a way out that the plan offers
      coterie submit train.yaml --prefer rack
      # follow it to its end, and exit with its result
      coterie submit train.yaml --follow
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.submit import run

        run(client, options)
