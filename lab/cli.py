"""`python -m lab`: start a lab, look at it, end it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.source import read_input, shown, warn
from coterie.cli.output.errors import reporting
from coterie.cli.output.formats import Output
from coterie.errors import NotFound, did_you_mean
from coterie.planning.inputs import read_snapshot
from lab import nodes
from lab.api import Api, ApiError
from lab.build import build as build_all
from lab.cluster import Lab
from lab.kubeconfig import read_kubeconfig
from lab.process import Program, started_at
from lab.state import Process, Record, all_records, find_record, new_record

app = typer.Typer(
    help="A real Kubernetes with KAI, KWOK and NVIDIA's ComputeDomain controller on this machine, without containers.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Which lab, when there are several.")]


def main() -> None:
    """Run the command line and exit."""
    try:
        app(prog_name="lab")
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


@app.command()
def build() -> None:
    """Build the programs of the lab; up and the tests do it as well when they are missing."""
    with reporting(Output.TABLE):
        for folder in build_all().values():
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
) -> None:
    """Start a lab that runs until `down`."""
    with reporting(Output.TABLE):
        snapshot = read_snapshot(read_input(cluster), shown(cluster)) if cluster else None
        build_all()
        record = new_record(name)

        def remember(program: Program) -> None:
            record.processes.append(Process(program.name, program.pid, started_at(program.pid) or ""))
            record.write()

        lab = Lab(folder=record.kubeconfig.parent, tied=False, kai_actions=actions, on_start=remember)
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
        records = all_records() if name is None else [_found(name)]
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
        ended = _found(name).end()
        typer.echo(f'lab "{name}" is gone: {_counted(len(ended), "program")} ended')


def _found(name: str) -> Record:
    record = find_record(name)
    if record is None:
        known = [each.name for each in all_records()]
        hint = did_you_mean(name, known) or (f"There is {', '.join(known)}." if known else "None was started.")
        raise NotFound(f'there is no lab "{name}"', hint)
    return record


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
