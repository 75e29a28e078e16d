"""The options of `coterie run`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.backends.base.settings import DEFAULT_PROCESSES
from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, TemplateOptions, WhatIfOptions
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import OutputOption, ProcessesOption
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(
    words={
        Exit.DONE: "the workflow completed",
        Exit.MUST_WAIT: "it would wait forever",
        Exit.NEVER_FITS: "it can never fit",
        Exit.WORK_FAILED: "it failed",
        Exit.WORK_CANCELLED: "it was canceled",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A call of `coterie run` as it was written. Without `state` nothing is kept."""

    file: Annotated[str, typer.Argument(help="A workflow file; - reads standard input.", metavar="FILE")]
    source: ClusterOptions
    template: TemplateOptions
    what_if: WhatIfOptions
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="DIR", help="Keep logs and results in this folder. Default: nothing is kept."),
    ] = None
    processes: ProcessesOption = DEFAULT_PROCESSES
    logs: Annotated[bool, typer.Option("--logs", help="Print the output of tasks as it is written.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")] = False
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(RunOptions)
def run(options: RunOptions) -> None:
    """Run a workflow on this machine: each task is a process, placed as on the given cluster. Needs no installation.

    Shows what happens until the workflow ends, then where its tasks ran and whether that is what was asked for. Without
    --cluster and --config the cluster is this machine. On a terminal, Ctrl-C asks whether to stop, continue
    or, with --state, detach. Elsewhere it stops the workflow; pressed again, it kills the tasks.

    \b
    Examples:
      coterie run examples/00-hello-rack/workflow.yaml --cluster examples/00-hello-rack/cluster.yaml
      # in a pool of a configuration, with a template value, and the tasks' output
      coterie run train.yaml --config coterie.yaml --pool gb200 --set steps=10 --logs
      # with a change that a plan offers as a way out
      coterie run train.yaml --cluster cluster.yaml --prefer rack
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers import run as handler

        handler.run(options)
