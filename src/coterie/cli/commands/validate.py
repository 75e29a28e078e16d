"""The options of `coterie validate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import (
    AllowedDomainOption,
    ClusterOptions,
    DebugOption,
    OffOption,
    PoolOptions,
    TemplateOptions,
)
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(words={Exit.DONE: "valid, with or without warnings", Exit.INVALID: "refused"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """A call of `coterie validate` as it was written."""

    files: Annotated[
        tuple[str, ...],
        typer.Argument(
            metavar="FILE...",
            help="Workflows, PodCliqueSets, graph deployments, ClusterTopologies; - reads standard input.",
        ),
    ]
    old: Annotated[
        tuple[str, ...],
        typer.Option(
            "--old",
            metavar="FILE",
            help="The files before the change: objects in both are checked as updates. May be repeated.",
        ),
    ] = ()
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also refuse what current operators refuse on new objects, such as packDomain."),
    ] = False
    off: OffOption = ()
    allowed_domains: AllowedDomainOption = ()
    pools: PoolOptions
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="Optional snapshot or context:NAME to read ClusterTopologies from.",
        ),
    ] = None
    template: TemplateOptions
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print what was found.")] = Output.TABLE
    debug: DebugOption = False

    @property
    def source(self) -> ClusterOptions:
        """The nodes that the call is about."""
        return self.pools.with_cluster(self.cluster)


@with_options(ValidateOptions)
def validate(options: ValidateOptions) -> None:
    """Check files against the rules alone, as an API server would: as new objects or, with --old, as updates.

    Needs no cluster. ClusterTopologies are known from the files themselves, --topology and --cluster; where none is,
    names and levels are not checked, and a warning says so.

    \b
    Examples:
      coterie validate deploy/*.yaml --topology cluster/topology.yaml
      # a change, against what is on the main branch
      git show main:deploy/chat.yaml | coterie validate deploy/chat.yaml --old - -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.validate import run

        run(options)
