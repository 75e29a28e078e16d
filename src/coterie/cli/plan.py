"""`coterie plan`: read the files, ask the planner, print what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import typer

from coterie.cli.changes import parse_changes
from coterie.cli.codes import Exit
from coterie.cli.output import Output, safe
from coterie.cli.screen import show_data
from coterie.cli.source import Source, collect, read_cluster, read_input, read_pools, shown, warn
from coterie.cli.tables import plan_lines
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.frontends.config import Config
from coterie.frontends.workflow.read import Workflow
from coterie.placement.refusal import Verdict
from coterie.planning.inputs import pool_for, read_workflow_file, workload_for
from coterie.planning.labels import guess_levels
from coterie.planning.plan import Plan, Planner
from coterie.planning.report import plan_json
from coterie.planning.workload import Workload
from coterie.sources import Snapshot
from coterie.topology.levels import Topology

_CODES = {
    Verdict.PLACED: Exit.DONE,
    Verdict.WAITING: Exit.MUST_WAIT,
    Verdict.UNDECIDED: Exit.MUST_WAIT,
    Verdict.IMPOSSIBLE: Exit.NEVER_FITS,
}


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of `coterie plan` as it was written."""

    files: tuple[str, ...]
    cluster: str | None
    config: str | None
    pool: str | None
    levels: str | None
    sets: tuple[str, ...]
    set_strings: tuple[str, ...]
    independent: bool
    fresh: bool
    prefer: tuple[str, ...]
    coarsen: tuple[str, ...]
    tasks: tuple[str, ...]
    without: tuple[str, ...]
    uncordon: tuple[str, ...]
    allow_excluded: bool
    output: Output

    def command(self) -> list[str]:
        """Return the call again, without its output format: what a way out is added to."""
        # A name that begins with a dash would be taken for an option; ./ keeps it a name.
        words = [
            "coterie",
            "plan",
            *(f"./{file}" if file.startswith("-") and file != "-" else file for file in self.files),
        ]
        for option, value in (
            ("--cluster", self.cluster),
            ("--config", self.config),
            ("--pool", self.pool),
            ("--levels", self.levels),
        ):
            words += [option, value] if value is not None else []
        for option, values in (
            ("--set", self.sets),
            ("--set-string", self.set_strings),
            ("--prefer", self.prefer),
            ("--coarsen", self.coarsen),
            ("--tasks", self.tasks),
            ("--without", self.without),
            ("--uncordon", self.uncordon),
        ):
            words += [word for value in values for word in (option, value)]
        for option, given in (
            ("--independent", self.independent),
            ("--fresh", self.fresh),
            ("--allow-excluded", self.allow_excluded),
        ):
            words += [option] if given else []
        return words


def run(ask: Ask) -> None:
    """Plan the files of a call, print the plans, and exit with the worst verdict."""
    workloads, snapshot = _read(ask)
    changes = parse_changes(ask, workloads, snapshot.cluster)
    planner = Planner(snapshot.cluster, changes, fresh=ask.fresh)
    plans: list[tuple[Plan, float]] = []
    for workload in workloads:
        start = time.perf_counter()
        plan = planner.plan(workload, remember=not ask.independent)
        plans.append((plan, (time.perf_counter() - start) * 1000))
    _print(ask, plans)
    warn(snapshot.notices)
    for plan, _ in plans:
        warn(plan.notices)
    raise typer.Exit(max(_CODES[plan.verdict] for plan, _ in plans))


def _print(ask: Ask, plans: list[tuple[Plan, float]]) -> None:
    if ask.output in {Output.JSON, Output.YAML}:
        data = [plan_json(plan, command=ask.command(), elapsed_ms=elapsed) for plan, elapsed in plans]
        show_data(data[0] if len(ask.files) == 1 else data, ask.output)
    elif ask.output is Output.NAME:
        for plan, _ in plans:
            for gang in plan.gangs:
                typer.echo(safe(f"{plan.workload.name}/{gang.gang.name}"))
    else:
        for line in plan_lines([plan for plan, _ in plans], wide=ask.output is Output.WIDE):
            typer.echo(line)


def _read(ask: Ask) -> tuple[list[Workload], Snapshot]:
    """Read everything the call names; all faults of all files are reported together."""
    if [*ask.files, ask.cluster].count("-") > 1:
        raise UsageError("standard input can be read once only", "Use - for one FILE or for --cluster, not for both.")
    faults: list[Fault] = []
    source = Source(ask.cluster, ask.config, ask.pool, ask.levels)
    levels, config = read_pools(faults, source)
    flows = [
        flow
        for file in ask.files
        if (flow := collect(faults, lambda file=file: _workflow(ask, file)))  # type: ignore[misc]
    ]
    # Without a workflow it is not known which pool, and so which backend's cluster, was meant.
    snapshot = read_cluster(faults, source, config if flows else None, flows[0].pool if flows else None)
    workloads = list(_lowered(ask, faults, config, flows, levels, snapshot))
    if faults or snapshot is None:
        raise SpecErrors([_with_levels(fault, snapshot) if config is None else fault for fault in faults])
    return workloads, snapshot


def _with_levels(fault: Fault, snapshot: Snapshot | None) -> Fault:
    """Where no levels were given at all, tell which ones the nodes' well-known labels suggest."""
    guess = guess_levels(snapshot.cluster) if snapshot and not snapshot.topology else Topology()
    if "has no topology keys" not in fault.message or not guess.levels:
        return fault
    option = ",".join(f"{level.name}={level.label}" for level in guess.levels)
    return replace(
        fault, message="no levels were given, so tasks cannot name any", hint=f"Pass them: --levels {option}"
    )


def _workflow(ask: Ask, file: str) -> Workflow:
    return read_workflow_file(read_input(file), shown(file), sets=ask.sets, set_strings=ask.set_strings)


def _lowered(
    ask: Ask,
    faults: list[Fault],
    config: Config | None,
    flows: list[Workflow],
    levels: Topology | None,
    snapshot: Snapshot | None,
) -> Iterator[Workload]:
    if (ask.config and config is None) or (ask.levels is not None and levels is None) or snapshot is None:
        return  # without a pool there is nothing to check the files against, and its faults are known
    for flow in flows:
        pool = pool_for(config, ask.pool, flow.pool, levels, snapshot)
        workload = collect(faults, lambda flow=flow, pool=pool: workload_for(flow, pool))  # type: ignore[misc]
        if workload:
            yield workload
