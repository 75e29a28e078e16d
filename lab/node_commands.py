"""`lab node`: real nodes of a lab that runs, stopped and brought back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from coterie.cli.output.errors import reporting
from coterie.cli.output.formats import Output
from coterie.errors import NotFound, did_you_mean
from lab.api import Api
from lab.errors import LabError
from lab.kubeconfig import read_kubeconfig
from lab.process import Program
from lab.programs.build import build
from lab.programs.components import KUBELET
from lab.realnodes import requirements
from lab.realnodes.namespaces import await_end
from lab.realnodes.node import RealNode, Surroundings, program_names, stored_nodes
from lab.state import Record, known_record
from lab.waits import wait_for

app = typer.Typer(help="Stop a real node of a lab, and start it again.", no_args_is_help=True, rich_markup_mode=None)

NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Which lab, when there are several.")]
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="The name of a real node.")]


@app.command()
def stop(node: NodeArgument, name: NameOption = "lab") -> None:
    """End the kubelet and all containers of a node at once, as when it loses its power."""
    with reporting(Output.TABLE), _stored(name, node) as (record, found):
        names = program_names(node)
        holder = next((each for each in record.processes if each.name == names[0]), None)
        with await_end(holder.pid if holder else 0, names[0]):
            ran = record.end_programs(names)
        if not ran:
            raise LabError(f'node "{node}" is stopped already', f"Start it with: scripts/lab node start {node}")
        found.report_unreachable()
        typer.echo(f'node "{node}" is stopped')


@app.command()
def start(node: NodeArgument, name: NameOption = "lab") -> None:
    """Bring a stopped node back, with the labels and cordons that it has now."""
    with reporting(Output.TABLE), _stored(name, node) as (record, found):
        names = program_names(node)
        if sum(each.name in names and each.running for each in record.processes) == len(names):
            raise LabError(f'node "{node}" runs already', f"Stop it with: scripts/lab node stop {node}")
        # Of a node that somebody else has killed, a part may be left.
        record.end_programs(names)
        try:
            found.start()
        except BaseException:
            record.end_programs(names)
            raise
        typer.echo(f'node "{node}" is back')


@contextmanager
def _stored(name: str, node: str) -> Iterator[tuple[Record, RealNode]]:
    record = known_record(name)
    if not record.complete:
        raise LabError(f'lab "{name}" is {record.condition}', f"See scripts/lab status --name {name}.")
    requirements.require()
    folder = record.kubeconfig.parent
    api = Api(*read_kubeconfig(record.kubeconfig))
    programs: list[Program] = []

    def run(program: Program) -> None:
        programs.append(program)
        program.start()
        record.add(program)

    def wait(predicate: Callable[[], Any], timeout: float, what: str) -> Any:  # noqa: ANN401 - what the predicate returns
        return wait_for(predicate, timeout, what, programs)

    try:
        nodes = stored_nodes(
            Surroundings(
                folder=folder,
                kubeconfig=record.kubeconfig,
                kubelet=build([KUBELET])[KUBELET.name] / "kubelet",
                images=folder / "images.tar",
                api=api,
                run=run,
                wait=wait,
                tied=False,
            )
        )
        if node not in nodes:
            known = f"Nodes are: {', '.join(nodes)}." if nodes else "The lab has none: start it with --real-nodes N."
            raise NotFound(f'lab "{name}" has no real node "{node}"', did_you_mean(node, list(nodes)) or known)
        yield record, nodes[node]
    finally:
        api.close()
