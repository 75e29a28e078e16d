"""The options of the commands that ask a service about workflows. Light: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from coterie.cli.client.call import asking, supposing
from coterie.cli.inputs import completion
from coterie.cli.inputs.options import (
    AllowExcludedOption,
    CoarsenOption,
    ConfigOption,
    DebugOption,
    LevelsOption,
    PreferOption,
    SetOption,
    SetStringOption,
    TasksOption,
    TolerateOption,
    TopologyOption,
    UncordonOption,
    WithoutOption,
)
from coterie.cli.inputs.service_options import (
    OutputOption,
    ServerOption,
    TokenOption,
    WatchOption,
    WorkflowArgument,
    YesOption,
)
from coterie.cli.output.formats import Output
from coterie.errors import UsageError

PoolNameOption = Annotated[
    str | None,
    typer.Option("--pool", "-p", metavar="NAME", help="Pool of the service.", autocompletion=completion.pools),
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A label of the workflow. May be repeated.")
]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the end.")]
TaskArgument = Annotated[
    str,
    typer.Argument(metavar="ID[/TASK]", help="The workflow, and one task of it.", autocompletion=completion.tasks),
]


def submit(
    file: Annotated[str, typer.Argument(help="A workflow file; - reads standard input.", metavar="FILE")],
    pool: PoolNameOption = None,
    sets: SetOption = None,
    set_strings: SetStringOption = None,
    priority: Annotated[
        Literal["HIGH", "NORMAL", "LOW"],
        typer.Option("--priority", case_sensitive=False, help="Whose turn comes first in the queue."),
    ] = "NORMAL",
    labels: LabelOption = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="Your own name for this call: it never makes a second workflow."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan it on what is free now; submit nothing.")] = False,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan", metavar="ID", help="Submit it only if the plan with this id, of --dry-run, still holds."
        ),
    ] = None,
    prefer: PreferOption = None,
    coarsen: CoarsenOption = None,
    tasks: TasksOption = None,
    without: WithoutOption = None,
    uncordon: UncordonOption = None,
    tolerate: TolerateOption = None,
    allow_excluded: AllowExcludedOption = False,
    follow: FollowOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Hand a workflow to the service and print its id.

    The options that ask what if are for --dry-run.

    \b
    Examples:
      coterie submit train.yaml --pool gb200 --set steps=1000
      # see where it would go, then submit it if that is still so
      coterie submit train.yaml --dry-run
      coterie submit train.yaml --plan 4f2a91c0
      # where would it go when another workflow has ended?
      coterie submit train.yaml --dry-run --without train-6
      # stay until it ends, and end as it does
      coterie submit train.yaml --follow
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.submit import Ask, run
        from coterie.cli.inputs.source import Source
        from coterie.cli.inputs.submission import Call

        none = Source(None, None, None, None)
        call = Call(file, none, tuple(sets or ()), tuple(set_strings or ()), priority)
        what_if = supposing(prefer, coarsen, tasks, without, uncordon, tolerate, allow_excluded=allow_excluded)
        run(client, Ask(call, pool, tuple(labels or ()), key, dry_run, plan, follow, output, what_if))


def list_(
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Only these, such as RUNNING. May be repeated."),
    ] = None,
    pool: PoolNameOption = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only those of one user.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="PREFIX", help="Only names that begin like this.")] = "",
    labels: LabelOption = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only those submitted within this time, such as 2h.")
    ] = None,
    active: Annotated[bool, typer.Option("--active", help="Only those that have not finished.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, metavar="N", help="At most so many.")] = 50,
    watch: WatchOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """List workflows, the newest first: where they run, or why they wait.

    \b
    Examples:
      coterie list --active --watch
      coterie list --pool gb200 --status FAILED --since 24h -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.views import Filter, list_workflows

        wanted = Filter(tuple(statuses or ()), pool, owner, name, tuple(labels or ()), since, active, limit)
        list_workflows(client, wanted, output, watch=watch)


def show(
    workflow: WorkflowArgument,
    watch: WatchOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show a workflow: its groups, where its tasks are, and whether that is what was asked for.

    \b
    Examples:
      coterie show train-7
      coterie show train-7 --watch
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.views import show_workflow

        show_workflow(client, workflow, output, watch=watch)


def top(
    level: Annotated[
        str | None, typer.Option("--level", "-l", metavar="LEVEL", help="Show the domains of this level only.")
    ] = None,
    pool: PoolNameOption = None,
    watch: WatchOption = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="Look at a snapshot, a cluster file or context:NAME instead of a service; - is standard input.",
        ),
    ] = None,
    config: ConfigOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show how many GPUs and nodes are in use and free, per pool and per domain, and who uses most.

    With --cluster it is about the nodes of a file or of a live cluster; otherwise about those of a service.

    \b
    Examples:
      coterie top
      coterie top --pool gb200 --level rack --watch
      # without a service
      coterie top --cluster examples/refusals/cluster.yaml
      kubectl get nodes,pods -A -o json | coterie top -c - -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    if cluster is None:
        with asking(server, token, output, debug=debug) as client:
            from coterie.cli.handlers.remote.top import Look
            from coterie.cli.handlers.remote.top import top as look_at

            if levels is not None or topology is not None:
                raise UsageError(
                    "--levels and --topology are for --cluster", "A service knows the levels of its pools."
                )
            look_at(client, Look(pool, level, output), watch=watch)
        return
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.handlers.remote.top import Look
        from coterie.cli.handlers.top import run
        from coterie.cli.inputs.source import Source

        if watch:
            raise UsageError("--watch follows a service, not --cluster", "Leave out one of the two.")
        run(Source(cluster, config, pool, levels, topology), Look(pool, level, output))


def why(
    target: Annotated[
        str,
        typer.Argument(
            metavar="ID[/GROUP]", help="The workflow, and one group of it.", autocompletion=completion.groups
        ),
    ],
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all the evidence: what each node and domain lacks.")
    ] = False,
    prefer: PreferOption = None,
    coarsen: CoarsenOption = None,
    tasks: TasksOption = None,
    without: WithoutOption = None,
    uncordon: UncordonOption = None,
    tolerate: TolerateOption = None,
    allow_excluded: AllowExcludedOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Say why a workflow waits: the reason, the best domains, who is in the way, and what would help.

    The options that ask what if show what would become of it then; they change nothing.

    \b
    Examples:
      coterie why train-7
      coterie why train-7/eval --verbose
      # where would it go if racks were only preferred, or when another workflow has ended?
      coterie why train-7 --prefer rack
      coterie why train-7 --without train-6
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.views import why as ask

        what_if = supposing(prefer, coarsen, tasks, without, uncordon, tolerate, allow_excluded=allow_excluded)
        ask(client, target, output, what_if, verbose=verbose)


def logs(
    target: TaskArgument,
    follow: FollowOption = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help="An earlier attempt. Default: the latest.")
    ] = None,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, metavar="N", help="Only the last N lines of each task.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what was written within this time, such as 5m.")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Print what a task has written, or all tasks of a workflow, each line with the name of its task before it.

    \b
    Examples:
      coterie logs train-7 --tail 20
      coterie logs train-7/worker-0 --follow
      coterie logs train-7/worker-0 --attempt 1 > first.log
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.logs import Wanted
        from coterie.cli.handlers.remote.logs import logs as read

        read(client, Wanted(target, attempt, tail, since, follow), output)


def events(
    workflow: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Only those of this workflow.", autocompletion=completion.workflows),
    ] = None,
    follow: FollowOption = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only those after this number.")] = 0,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Print what happened, in order; with --follow and JSON, one object for each line.

    \b
    Examples:
      coterie events train-7
      coterie events --follow -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.views import events as read

        read(client, workflow, output, follow_on=follow, after=after)


def wait(
    workflow: WorkflowArgument,
    wanted: Annotated[
        str, typer.Option("--for", metavar="WORD", help="finished, placed, running, completed, or another status.")
    ] = "finished",
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="At most so long, such as 10m. Default: for ever.")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Wait until a workflow is placed, runs, or has finished.

    \b
    Examples:
      coterie wait train-7
      coterie wait train-7 --for=placed --timeout=10m
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.wait import wait as stay

        stay(client, workflow, wanted, timeout, output)


def cancel(
    workflows: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Workflows, such as train-7.", autocompletion=completion.active_workflows),
    ],
    message: Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why, for whoever asks later.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Kill its tasks at once instead of asking them to stop.")
    ] = False,
    yes: YesOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Stop workflows; on a terminal, several only after a question.

    \b
    Examples:
      coterie cancel train-7 -m "wrong learning rate"
      coterie list --active --owner ana -o name | xargs coterie cancel
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.changes import cancel as stop

        stop(client, workflows, message, output, force=force, yes=yes)


def retry(
    target: TaskArgument,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Run again what failed: all of a workflow that did, or one task of it.

    \b
    Examples:
      coterie retry train-7
      coterie retry train-7/worker-3
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.changes import retry as again

        again(client, target, output)


def delete(
    workflows: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Workflows, such as train-7.", autocompletion=completion.ended_workflows),
    ],
    yes: YesOption = False,
    server: ServerOption = None,
    token: TokenOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Delete workflows that have ended, with their logs and outputs.

    \b
    Examples:
      coterie delete train-7
      coterie list --status COMPLETED -o name | xargs coterie delete
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with asking(server, token, output, debug=debug) as client:
        from coterie.cli.handlers.remote.changes import delete as forget

        forget(client, workflows, output, yes=yes)
