"""The commands and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.codes import HELP
from coterie.cli.output import Output

app = typer.Typer(
    help="Keep the tasks of a GPU workload where their interconnect is: plan it, explain it.",
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


@app.command(epilog=HELP)
def plan(
    files: Annotated[list[str], typer.Argument(help="Workflow files; - reads standard input.", metavar="FILE...")],
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="JSON of `kubectl get nodes,pods -A -o json`, a cluster file, or - for standard input. "
            "Default: the cluster file of the pool's backend.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", envvar="COTERIE_CONFIG", help="Backends and pools (coterie.yaml)."),
    ] = None,
    pool: Annotated[str | None, typer.Option("--pool", "-p", metavar="NAME", help="Pool to plan for.")] = None,
    levels: Annotated[
        str | None,
        typer.Option("--levels", metavar="NAME=LABEL,...", help="Topology for this call, coarsest level first."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a template value; numbers become numbers."),
    ] = None,
    set_strings: Annotated[
        list[str] | None, typer.Option("--set-string", metavar="KEY=VALUE", help="Set a template value as text.")
    ] = None,
    independent: Annotated[
        bool, typer.Option("--independent", help="Plan each file as if it were the only one.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Plan a new submission, even if tasks of that name already run.")
    ] = False,
    prefer: Annotated[
        list[str] | None, typer.Option("--prefer", metavar="LEVEL", help="What if this level were only preferred?")
    ] = None,
    coarsen: Annotated[
        list[str] | None, typer.Option("--coarsen", metavar="LEVEL", help="What if the next coarser level would do?")
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--tasks", metavar="GROUP=N", help="What if a group had only its first N tasks?")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="OWNER", help="What if this holder's pods were gone?")
    ] = None,
    uncordon: Annotated[
        list[str] | None, typer.Option("--uncordon", metavar="NODE", help="What if this node were back in service?")
    ] = None,
    allow_excluded: Annotated[
        bool, typer.Option("--allow-excluded", help="What if nodesExcluded were ignored?")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the plan.")] = Output.TABLE,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback for unexpected errors.")] = False,
) -> None:
    """Show where workflows would run now, or why they would not; changes nothing.

    Several files are planned one after the other, each seeing what the earlier ones took.

    \b
    Examples:
      # on a snapshot of a real cluster
      kubectl get nodes,pods -A -o json | coterie plan train.yaml --cluster - --levels rack=topology.kubernetes.io/rack
      # on a cluster file that names its own levels
      coterie plan examples/01-single-nvl72-rack/workflow.yaml --cluster examples/01-single-nvl72-rack/cluster.yaml
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.plan import Ask, run
    from coterie.cli.report import reporting

    with reporting(output, debug=debug):
        run(
            Ask(
                files=tuple(files),
                cluster=cluster,
                config=config,
                pool=pool,
                levels=levels,
                sets=tuple(sets or ()),
                set_strings=tuple(set_strings or ()),
                independent=independent,
                fresh=fresh,
                prefer=tuple(prefer or ()),
                coarsen=tuple(coarsen or ()),
                tasks=tuple(tasks or ()),
                without=tuple(without or ()),
                uncordon=tuple(uncordon or ()),
                allow_excluded=allow_excluded,
                output=output,
            )
        )


@app.command(epilog=HELP)
def explain(
    topic: Annotated[
        str, typer.Argument(help="A reason such as NoDomainFits, or a field such as workflow.groups.tasks.")
    ],
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback for unexpected errors.")] = False,
) -> None:
    """Explain a reason for refusal, or a field of a workflow or of the configuration.

    \b
    Examples:
      coterie explain NoDomainFits
      coterie explain requirementType
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.explain import run
    from coterie.cli.report import reporting

    with reporting(Output.TABLE, debug=debug):
        run(topic)
