"""The options of `coterie render`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.inputs.options import ClusterOptions, DebugOption, PoolOptions, TemplateOptions
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

EXIT_CODES = exit_code_help(Exit.UNSUPPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """A call of `coterie render` as it was written."""

    files: Annotated[
        tuple[str, ...],
        typer.Argument(
            help="Files with workflows, PodCliqueSets, graph deployments, topologies; - reads standard input.",
            metavar="FILE...",
        ),
    ]
    backend: Annotated[
        Literal["kai", "grove"],
        typer.Option("--backend", "-b", help="Scheduler to write manifests for; grove does not take workflows."),
    ] = "kai"
    pools: PoolOptions
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="Snapshot, cluster file or context:NAME to read running pods, node sizes and levels from.",
        ),
    ] = None
    template: TemplateOptions
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NS",
            help="Namespace of the objects. Default: that of the file, of the backend, or default.",
        ),
    ] = None
    groups: Annotated[
        tuple[str, ...],
        typer.Option("--group", "-g", metavar="NAME", help="Render this group or gang only; may be repeated."),
    ] = ()
    output: Annotated[
        Literal["yaml", "json", "name"], typer.Option("--output", "-o", help="How to print the manifests.")
    ] = "yaml"
    debug: DebugOption = False

    @property
    def source(self) -> ClusterOptions:
        """The nodes that the call is about."""
        return self.pools.with_cluster(self.cluster)


@with_options(RenderOptions)
def render(options: RenderOptions) -> None:
    """Write the manifests of workloads, ready for kubectl apply; changes nothing.

    \b
    Examples:
      coterie render train.yaml --config coterie.yaml --pool gb200 | kubectl apply -f -
      # the PodCliqueSet of a graph deployment, and what Grove would make of it
      coterie render serve.yaml --backend grove
      coterie render serve.yaml --topology topology.yaml --cluster context:prod
      # without a configuration
      coterie render train.yaml --levels zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    # Manifests are read by kubectl, so only those who ask for JSON get faults as data in their place.
    with reporting(Output.JSON if options.output == "json" else Output.TABLE, debug=options.debug):
        from coterie.cli.handlers.render import run

        run(options)
