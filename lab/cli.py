"""`python -m lab`: start a lab, look at it, end it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.source import read_input, shown, warn
from coterie.cli.output.errors import reporting
from coterie.cli.output.formats import Output
from coterie.planning.inputs import read_snapshot
from lab import node_commands, nodes
from lab.api import Api, ApiError
from lab.cluster import Lab, scheduler_names
from lab.kubeconfig import read_kubeconfig
from lab.node_commands import NameOption
from lab.programs.build import build as build_components
from lab.programs.build import built_folder
from lab.programs.components import ALL, USUAL, Component
from lab.realnodes import requirements
from lab.realnodes.network import MOST_NODES
from lab.state import Record, all_records, known_record, new_record

app = typer.Typer(
    help="A real Kubernetes with KAI, KWOK and NVIDIA's ComputeDomain controller on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(node_commands.app, name="node")


def main() -> None:
    """Run the command line and exit."""
    # Whoever ends a command ends what it has begun: a compiler, or a lab that is half started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.INTERRUPTED))
    try:
        app(prog_name="lab")
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


@app.command()
def build(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Build nothing; exit with 1 when something is not built.")
    ] = False,
) -> None:
    """Build the programs of the lab; up and the tests do it as well when they are missing."""
    with reporting(Output.TABLE):
        wanted: Sequence[Component] = ALL
        try:
            requirements.require()
        except requirements.RealNodesError as error:
            typer.echo(f"NO REAL NODES: {error}. {error.hint}", err=True)
            wanted = USUAL
        if check:
            missing = [component.name for component in wanted if not built_folder(component).is_dir()]
            if missing:
                typer.echo(f"not built: {', '.join(missing)}")
                raise typer.Exit(Exit.FAILED)
            return
        for folder in build_components(wanted).values():
            typer.echo(folder)


@app.command()
def up(
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="SRC", help="Nodes and pods to begin with: a cluster file or kubectl's JSON."
        ),
    ] = None,
    name: NameOption = "lab",
    actions: Annotated[
        str, typer.Option("--kai-actions", metavar="LIST", help="What KAI may do; more than allocate evicts pods.")
    ] = "allocate",
    schedulers: Annotated[
        str,
        typer.Option(
            "--schedulers", metavar="LIST", help="What schedules: kai, default (kube-scheduler), or kai,default."
        ),
    ] = "kai",
    real_nodes: Annotated[
        int,
        typer.Option(
            "--real-nodes",
            metavar="N",
            min=0,
            max=MOST_NODES,
            help="Run the containers of the first N nodes; the others are simulated. Needs root.",
        ),
    ] = 0,
) -> None:
    """Start a lab that runs until `down`."""
    with reporting(Output.TABLE):
        wanted = scheduler_names(schedulers)
        snapshot = read_snapshot(read_input(cluster), shown(cluster)) if cluster else None
        if real_nodes:
            requirements.require()
            snapshot = snapshot or read_snapshot(_plain(real_nodes), "the nodes of the lab")
        build_components(ALL if real_nodes else USUAL)
        record = new_record(name)
        lab = Lab(
            schedulers=wanted,
            kai_actions=actions,
            real_nodes=real_nodes,
            folder=record.kubeconfig.parent,
            tied=False,
            on_start=record.add,
        )
        try:
            lab.start()
            if snapshot:
                warn(snapshot.notices)
                nodes.add(lab, snapshot)
            record.kubectl = str(lab.binary("kubectl"))
            record.cluster = shown(cluster) if cluster else ""
            record.complete = True
            record.write()
        except BaseException:
            lab.stop()
            record.end()
            raise
        _show(record)


@app.command()
def status(name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Only this lab.")] = None) -> None:
    """Say which labs there are, what runs in them and what does not."""
    with reporting(Output.TABLE):
        records = all_records() if name is None else [known_record(name)]
        if not records:
            typer.echo("no lab is running; start one with: scripts/lab up --cluster FILE")
        for record in records:
            _show(record)
        if any(record.condition != "running" for record in records):
            raise typer.Exit(Exit.FAILED)


@app.command()
def down(name: NameOption = "lab") -> None:
    """End a lab and remove all that it kept."""
    with reporting(Output.TABLE):
        ended = known_record(name).end()
        typer.echo(f'lab "{name}" is gone: {_counted(len(ended), "program")} ended')


def _plain(count: int) -> bytes:
    """Return a cluster file of nodes without GPUs, for a lab that is given none."""
    return "\n".join(["nodes:", *(f"- {{name: node-{index + 1}}}" for index in range(count))]).encode()


def _show(record: Record) -> None:
    condition = record.condition
    typer.echo(f'lab "{record.name}" is {condition}{_contents(record) if condition == "running" else ""}')
    if condition in {"broken", "dead"}:
        gone = ", ".join(record.missing) or "everything"
        typer.echo(f"  gone: {gone}")
        typer.echo(f"  logs: {record.kubeconfig.parent / 'logs'}")
        typer.echo(f"  end it with: scripts/lab down --name {record.name}")
    if condition in {"running", "broken"}:
        typer.echo(f"  export KUBECONFIG={record.kubeconfig}")
    if condition == "running":
        typer.echo(f"  kubectl: {record.kubectl}")


def _contents(record: Record) -> str:
    url, token, authority = read_kubeconfig(record.kubeconfig)
    api = Api(url, token, authority)
    try:
        node_count, pods = len(api.objects("nodes")), api.objects("pods")
    except ApiError as error:
        return f", but {error}"
    finally:
        api.close()
    waiting = sum(1 for pod in pods if not pod["spec"].get("nodeName"))
    held = f": {_counted(node_count, 'node')}, {_counted(len(pods), 'pod')}"
    return held + (f" ({waiting} on no node)" if waiting else "")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
