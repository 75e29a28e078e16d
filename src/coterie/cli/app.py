"""The commands and their options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from coterie.cli.commands.service import register
from coterie.cli.commands.simulate_options import simulate
from coterie.cli.commands.validate_options import HELP as _VALIDATE_HELP
from coterie.cli.commands.validate_options import validate
from coterie.cli.exit_codes import Exit, told
from coterie.cli.help import Grouped
from coterie.cli.inputs.options import (
    AllowExcludedOption,
    ClusterOption,
    CoarsenOption,
    ConfigOption,
    DebugOption,
    LevelsOption,
    PoolOption,
    PreferOption,
    SetOption,
    SetStringOption,
    SourceArgument,
    TasksOption,
    TolerateOption,
    TopologyOption,
    UncordonOption,
    WithoutOption,
)
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.formats import Output

_PLAN_HELP = told(Exit.MUST_WAIT, Exit.NEVER_FITS, Exit.UNSUPPORTED, words={Exit.DONE: "everything can be placed now"})
_RENDER_HELP = told(Exit.UNSUPPORTED)
_LOOK_HELP = told()
_CHECK_HELP = told(
    words={Exit.DONE: "nothing odd or remarks only", Exit.MUST_WAIT: "warnings", Exit.NEVER_FITS: "errors"}
)
_AUDIT_HELP = told(
    words={
        Exit.DONE: "everything that runs is as required, preferences missed or not",
        Exit.MUST_WAIT: "a gang is incomplete or a running task cannot be judged",
        Exit.NEVER_FITS: "something is VIOLATED",
    }
)

app = typer.Typer(
    help="Keep the tasks of a GPU workload where their interconnect is: plan, explain, check, draw and render them, "
    "run them here, or have a service run them.",
    cls=Grouped,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"coterie {version('coterie')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


@app.command(epilog=_PLAN_HELP)
def plan(
    files: Annotated[list[str], typer.Argument(help="Workflow files; - reads standard input.", metavar="FILE...")],
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    sets: SetOption = None,
    set_strings: SetStringOption = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Plan each file as if it were the only one.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Plan a new submission, even if tasks of that name already run.")
    ] = False,
    prefer: PreferOption = None,
    coarsen: CoarsenOption = None,
    tasks: TasksOption = None,
    without: WithoutOption = None,
    uncordon: UncordonOption = None,
    tolerate: TolerateOption = None,
    allow_excluded: AllowExcludedOption = False,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Show the domains that each group had to choose from.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the plan.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
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
    from coterie.cli.handlers.plan import Ask, run
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        run(
            Ask(
                files=tuple(files),
                cluster=cluster,
                config=config,
                pool=pool,
                levels=levels,
                topology=topology,
                sets=tuple(sets or ()),
                set_strings=tuple(set_strings or ()),
                independent=independent,
                fresh=fresh,
                prefer=tuple(prefer or ()),
                coarsen=tuple(coarsen or ()),
                tasks=tuple(tasks or ()),
                without=tuple(without or ()),
                uncordon=tuple(uncordon or ()),
                tolerate=tuple(tolerate or ()),
                allow_excluded=allow_excluded,
                alternatives=alternatives,
                output=output,
            )
        )


app.command(epilog=_VALIDATE_HELP)(validate)


@app.command(epilog=_LOOK_HELP)
def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="A reason such as NoDomainFits, a warning such as DoesNotTile, or a field such as "
            "workflow.groups.tasks. Default: list them."
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the page.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Explain a reason for refusal, a warning, or a field of a workflow or of the configuration.

    \b
    Examples:
      coterie explain NoDomainFits
      coterie explain DoesNotTile
      coterie explain requirementType
      # all topics
      coterie explain
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.explain import run
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        run(topic, output)


@app.command(epilog=_RENDER_HELP)
def render(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files with workflows, PodCliqueSets, graph deployments, topologies; - reads standard input.",
            metavar="FILE...",
        ),
    ],
    backend: Annotated[
        Literal["kai", "grove"],
        typer.Option("--backend", "-b", help="Whose manifests to write; grove takes no workflows."),
    ] = "kai",
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="Snapshot, cluster file or context:NAME: tells where pods run, how large nodes are, and levels.",
        ),
    ] = None,
    sets: SetOption = None,
    set_strings: SetStringOption = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NS",
            help="Namespace of the objects. Default: that of the file, of the backend, or default.",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="NAME", help="Render this group or gang only; may be repeated."),
    ] = None,
    output: Annotated[
        Literal["yaml", "json", "name"], typer.Option("--output", "-o", help="How to print the manifests.")
    ] = "yaml",
    debug: DebugOption = False,
) -> None:
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
    from coterie.cli.handlers.render import Ask, run
    from coterie.cli.output.errors import reporting

    # Manifests are read by kubectl, so only those who ask for JSON get faults as data in their place.
    with reporting(Output.JSON if output == "json" else Output.TABLE, debug=debug):
        run(
            Ask(
                files=tuple(files),
                backend=backend,
                config=config,
                pool=pool,
                levels=levels,
                topology=topology,
                cluster=cluster,
                sets=tuple(sets or ()),
                set_strings=tuple(set_strings or ()),
                namespace=namespace,
                groups=tuple(groups or ()),
                output=output,
            )
        )


@app.command(epilog=_CHECK_HELP)
def check(
    source: SourceArgument = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the findings.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Check whether node labels form the hierarchy that levels need, and whether a pool suits its cluster.

    Without levels, they are guessed from well-known labels.

    \b
    Examples:
      kubectl get nodes,pods -A -o json | coterie check -
      coterie check snapshot.json --levels zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack
      coterie check --config examples/coterie.yaml --pool shared
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.check import run
    from coterie.cli.inputs.source import Source, only_one
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        run(Source(only_one(source, cluster), config, pool, levels, topology), output)


@app.command(epilog=_AUDIT_HELP)
def audit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="JSON of `kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json`, "
            "- for standard input, or context:NAME for a live cluster.",
        ),
    ],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the findings.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Hold where the tasks of each gang really run against what was asked: held, missed, VIOLATED, unobservable.

    \b
    Examples:
      coterie audit context:prod
      kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json | coterie audit -
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.audit import run
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        run(source, output)


@app.command("map", epilog=_LOOK_HELP)
def map_(
    source: SourceArgument = None,
    level: Annotated[
        str | None,
        typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level. Default: the finest."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="Make what this holder has stand out.")
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Show what is free, and where, instead of what is used.")
    ] = False,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    output: Annotated[Drawing, typer.Option("--output", "-o", help="How to print the map.")] = Drawing.TABLE,
    debug: DebugOption = False,
) -> None:
    """Draw zones, racks, nodes and GPUs, and who holds them.

    \b
    Examples:
      kubectl get nodes,pods -A -o json | coterie map -
      coterie map examples/06-training-4x4x4/cluster.yaml --workload rl-5
      coterie map examples/06-training-4x4x4/cluster.yaml -o svg > map.svg
      # what a service runs
      coterie pool map gb200
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.map import run
    from coterie.cli.inputs.source import Source, only_one
    from coterie.cli.output.errors import reporting
    from coterie.cli.output.map import View

    with reporting(output.plain, debug=debug):
        run(Source(only_one(source, cluster), config, pool, levels, topology), View(level, workload, free), output)


@app.command(epilog=_LOOK_HELP)
def fit(
    source: SourceArgument = None,
    gpus: Annotated[int, typer.Option("--gpus", min=0, max=1 << 20, help="GPUs of one task.")] = 0,
    level: Annotated[
        str | None, typer.Option("--level", "-l", metavar="LEVEL", help="The level whose domain a gang shares.")
    ] = None,
    cpu: Annotated[str | None, typer.Option("--cpu", metavar="C", help="Processors of one task: 16, 500m.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="M", help="Memory of one task: 256Gi.")] = None,
    tasks: Annotated[
        int | None,
        typer.Option("--tasks", min=1, max=1 << 30, metavar="K", help="Count gangs of this many tasks as well."),
    ] = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show the largest gang of equal tasks that fits in each domain of a level, now and on the empty cluster.

    \b
    Examples:
      coterie fit --gpus 8 --level rack examples/refusals/cluster.yaml
      kubectl get nodes,pods -A -o json | coterie fit --gpus 4 --memory 256Gi --level zone --tasks 16 -
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.fit import run
    from coterie.cli.inputs.source import Source, only_one
    from coterie.cli.output.errors import reporting
    from coterie.planning.fit import Wish

    with reporting(output, debug=debug):
        run(
            Source(only_one(source, cluster), config, pool, levels, topology),
            level,
            Wish(gpus, cpu, memory, tasks),
            output,
        )


app.command(epilog=_LOOK_HELP)(simulate)
register(app)
