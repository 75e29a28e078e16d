"""The options of `coterie plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, TemplateOptions, WhatIfOptions
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(
    Exit.MUST_WAIT, Exit.NEVER_FITS, Exit.UNSUPPORTED, words={Exit.DONE: "everything can be placed now"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """A call of `coterie plan` as it was written."""

    files: Annotated[tuple[str, ...], typer.Argument(help="Workflow files; - reads standard input.", metavar="FILE...")]
    source: ClusterOptions
    template: TemplateOptions
    independent: Annotated[bool, typer.Option("--independent", help="Plan each file as if it were the only one.")] = (
        False
    )
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Plan a new submission, even if tasks of that name already run.")
    ] = False
    what_if: WhatIfOptions
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Show the domains that each group had to choose from.")
    ] = False
    rendered: Annotated[
        bool, typer.Option("--show-rendered", help="Print the files with their templates rendered; plan nothing.")
    ] = False
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the plan.")] = Output.TABLE
    debug: DebugOption = False


@with_options(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Show where workflows would run now, or why they would not; changes nothing.

    Several files are planned one after the other, each seeing what the earlier ones took. What a service runs is not
    seen: coterie submit --dry-run plans on that.

    \b
    Examples:
      # on a snapshot of a real cluster
      kubectl get nodes,pods -A -o json |
        coterie plan train.yaml -c - --levels zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack
      # on a cluster file that names its own levels
      coterie plan examples/01-single-nvl72-rack/workflow.yaml --cluster examples/01-single-nvl72-rack/cluster.yaml
      # which racks it had to choose from, or what each of them lacks
      coterie plan examples/00-hello-rack/workflow.yaml --cluster examples/00-hello-rack/cluster.yaml --alternatives
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.plan import run, show_rendered

        (show_rendered if options.rendered else run)(options)
