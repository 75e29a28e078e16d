"""The table of commands: their modules, loaded when they are called, and their summaries, for the help text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
import typer.main
from typer._click.core import Command
from typer.core import TyperGroup

from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES


class CommandEntry(NamedTuple):
    """A command: its module in `coterie.cli.commands`, its function or group there, and the start of its help text."""

    module: str
    attribute: str
    summary: str


# The titles are those of the help text.
PANELS: Mapping[str, Mapping[str, CommandEntry]] = {
    "Plan and inspect files and clusters": {
        "plan": CommandEntry(
            "plan", "plan", "Show where workflows would run now, or why they would not; changes nothing"
        ),
        "validate": CommandEntry(
            "validate",
            "validate",
            "Check files against the rules alone, as an API server would: as new objects or, with --old, as updates",
        ),
        "explain": CommandEntry(
            "explain",
            "explain",
            "Explain a reason for refusal, a warning, or a field of a workflow or of the configuration",
        ),
        "render": CommandEntry(
            "render",
            "render",
            "Write the manifests of workloads, ready for kubectl apply; changes nothing",
        ),
        "check": CommandEntry(
            "check",
            "check",
            "Check whether node labels form the hierarchy that levels need, and whether a pool suits its cluster",
        ),
        "audit": CommandEntry(
            "audit",
            "audit",
            "Compare where the tasks of each gang run with what was requested: held, missed, VIOLATED, unobservable",
        ),
        "map": CommandEntry("map", "map_", "Draw zones, racks, nodes and GPUs, and who holds them"),
        "fit": CommandEntry(
            "fit",
            "fit",
            "Show the largest gang of equal tasks that fits in each domain of a level, now and on the empty cluster",
        ),
        "simulate": CommandEntry(
            "simulate",
            "simulate",
            "Replay a trace of jobs on a cluster, and compare waits, GPU use and fragmentation between policies",
        ),
    },
    "Run here": {
        "run": CommandEntry(
            "run",
            "run",
            "Run a workflow on this machine: each task is a process, placed as on the given cluster. Needs no "
            "installation",
        ),
    },
    "Run a service": {
        "serve": CommandEntry("serve", "serve", "Start the service and print its URL"),
        "token": CommandEntry("token", "token", "Create, list and delete tokens for the service"),
    },
    "Run in a cluster": {
        "operator": CommandEntry(
            "operator",
            "operator",
            "Run the operator: keep KAI's Topologies in sync with the ClusterTopologies of a cluster, and admit "
            "objects",
        ),
    },
    "Ask a service": {
        "submit": CommandEntry("remote.submit", "submit", "Submit a workflow to the service and print its id"),
        "list": CommandEntry(
            "remote.list", "list_", "List workflows, the newest first: where they run, or why they wait"
        ),
        "show": CommandEntry(
            "remote.show",
            "show",
            "Show a workflow: its groups, where its tasks are, and whether that is what was asked for",
        ),
        "why": CommandEntry(
            "remote.why",
            "why",
            "Explain why a workflow waits: the reason, the best domains, who holds them, and the ways out",
        ),
        "top": CommandEntry(
            "remote.top",
            "top",
            "Show GPUs and nodes in use and free, by pool and domain, and the largest users",
        ),
        "logs": CommandEntry(
            "remote.logs",
            "logs",
            "Print the log of a task, or of all tasks of a workflow, each line prefixed with its task",
        ),
        "events": CommandEntry(
            "remote.events",
            "events",
            "Print events in order; with --follow and JSON, one object per line",
        ),
        "wait": CommandEntry("remote.wait", "wait", "Wait until a workflow is placed, runs, or has finished"),
        "cancel": CommandEntry(
            "remote.cancel", "cancel", "Cancel workflows; for several, ask for confirmation on a terminal"
        ),
        "retry": CommandEntry("remote.retry", "retry", "Retry a failed workflow, or one task of it"),
        "delete": CommandEntry(
            "remote.delete", "delete", "Delete workflows that have ended, with their logs and outputs"
        ),
        "pool": CommandEntry("remote.pool", "pool", "List, show, draw, apply and delete the pools of a service"),
        "topology": CommandEntry(
            "remote.topology",
            "topology",
            "List and show the levels of pools, with their domains, and who uses a topology",
        ),
    },
}


class LazyCommands(MutableMapping[str, Command]):
    """The commands by name; each is loaded when it is first looked up, since most calls need one of them."""

    def __init__(self) -> None:
        self._entries = {name: entry for panel in PANELS.values() for name, entry in panel.items()}

    def __getitem__(self, name: str) -> Command:
        return _load(name, self._entries[name])

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as Mapping has it
        """Return a command, or the default for a name that is none; an error in loading one is not hidden."""
        return self[name] if name in self._entries else default

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, name: str, command: Command) -> None:
        raise TypeError("commands are listed in the table")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are listed in the table")


@cache
def _load(name: str, entry: CommandEntry) -> Command:
    module = import_module(f"coterie.cli.commands.{entry.module}")
    command = getattr(module, entry.attribute)
    group = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    group.callback()(_do_nothing)
    if isinstance(command, typer.Typer):
        group.add_typer(command, name=name)
    else:
        group.command(name, epilog=getattr(module, "EXIT_CODES", CLIENT_EXIT_CODES))(command)
    found = typer.main.get_command(group)
    assert isinstance(found, TyperGroup)  # noqa: S101 - it has a callback
    return found.commands[name]


def _do_nothing() -> None:
    """Do nothing: only a program with a callback is a group."""
