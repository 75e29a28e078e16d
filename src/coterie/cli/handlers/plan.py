"""`coterie plan`: read the files, call the planner, print its plans."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import typer

from coterie.cli.commands.plan import PlanOptions
from coterie.cli.commands.remote.submit import SubmitOptions
from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.options import WhatIfOptions
from coterie.cli.inputs.parameters import command_words
from coterie.cli.inputs.service_options import ServiceOptions
from coterie.cli.inputs.source import (
    collect,
    named_files,
    read_cluster,
    read_input,
    read_pools,
    say_service,
    shown,
    warn,
)
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.plan import plan_lines
from coterie.cli.output.screen import screen, show, show_data
from coterie.config.configuration import Config, Pool
from coterie.document.located import decode
from coterie.document.schema import by_file
from coterie.errors import Fault, Notice, SpecErrors, UsageError
from coterie.frontends.grove.topology_set import Topologies
from coterie.frontends.kubernetes.objects import is_kubernetes
from coterie.frontends.template.render import render
from coterie.placement.refusal import Verdict
from coterie.placement.whatif import Change
from coterie.planning.advice.quota import QuotaQuestion, with_quota
from coterie.planning.changes import WhatIf, parse_changes
from coterie.planning.fit import CandidatePlanner, choices_json
from coterie.planning.inputs import (
    NO_TOPOLOGIES,
    TopologyChoice,
    all_topologies,
    drift_notices,
    pool_for,
    topology_notices,
)
from coterie.planning.load import (
    CompileContext,
    Documents,
    WrittenWorkload,
    draft_documents,
    joined,
    levels_for,
    lowered,
)
from coterie.planning.plan import Plan
from coterie.planning.report import plan_json
from coterie.planning.snapshot_levels import kai_levels
from coterie.planning.workload import Workload
from coterie.rendering.alternatives import choice_lines
from coterie.rendering.text import Style
from coterie.sources import Snapshot
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.devices import claim_templates
from coterie.topology.domains import abbreviations
from coterie.topology.levels import Topology

Json = dict[str, Any]

_CODES = {
    Verdict.PLACED: Exit.DONE,
    Verdict.WAITING: Exit.MUST_WAIT,
    Verdict.UNDECIDED: Exit.MUST_WAIT,
    Verdict.IMPOSSIBLE: Exit.NEVER_FITS,
}


def show_rendered(options: PlanOptions) -> None:
    """Print the files of a call as they are read: templates rendered, everything else as it is."""
    texts = [(shown(file), _text(options, read_input(file), shown(file))) for file in options.files]
    if options.output in {Output.JSON, Output.YAML}:
        show_data([{"file": file, "text": text} for file, text in texts], options.output)
        return
    for number, (_, text) in enumerate(texts):
        show([*(["---"] if number else []), *(safe(line) for line in text.splitlines())])


def _text(options: PlanOptions, data: bytes, file: str) -> str:
    text = decode(data, file)
    if is_kubernetes(data):
        return text
    return render(text, file, options.template.sets, options.template.set_strings).text


def run(options: PlanOptions) -> None:
    """Plan the files of a call, print the plans, and exit with the worst verdict."""
    workloads, snapshot = _read(options)
    what_if = WhatIf(**asdict(options.what_if))
    changes = parse_changes(what_if, workloads, snapshot.cluster)
    planner = CandidatePlanner(snapshot.cluster, changes, fresh=options.fresh)
    plans: list[_Planned] = []
    for number, workload in enumerate(workloads):
        earlier = [] if options.independent else workloads[:number]
        question = _quota_question(options, workload, planner, earlier)
        plans.append(replace(_planned(options, workload, planner), question=question))
    _print(options, plans)
    warn(snapshot.notices)
    warn(tuple(dict.fromkeys(notice for planned in plans for notice in planned.plan.notices)))
    pool = workloads[0].pool
    say_service(options.source, pool, _service_call(options, pool))
    raise typer.Exit(max(_CODES[planned.plan.verdict] for planned in plans))


def _service_call(options: PlanOptions, pool: Pool) -> str:
    """Return the command line that plans the first file on what a service runs."""
    submission = SubmitOptions(
        file=options.files[0],
        pool=pool.name,
        template=options.template,
        dry_run=True,
        what_if=WhatIfOptions(),
        service=ServiceOptions(),
    )
    return shlex.join(command_words("submit", submission))


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan, its duration, and the candidates of its gangs, if requested."""

    plan: Plan
    elapsed_ms: float
    alternatives: Mapping[str, Sequence[Json]] | None = None
    question: QuotaQuestion | None = None


def _quota_question(
    options: PlanOptions, workload: Workload, planner: CandidatePlanner, earlier: Sequence[Workload]
) -> QuotaQuestion:
    """Return the question what a workload over its pool's limit waits for, among those planned before it."""

    def again(_: Pool, changes: Sequence[Change], gone: Collection[str]) -> CandidatePlanner:
        twin = CandidatePlanner(planner.cluster, (*planner.changes, *changes), fresh=planner.fresh)
        for one in earlier:
            if one.name not in gone:
                twin.plan(one)
        return twin

    held = planner.held(workload.pool.name)
    return QuotaQuestion(workload, command_words("plan", options), held, again, named_release=False)


def _planned(options: PlanOptions, workload: Workload, planner: CandidatePlanner) -> _Planned:
    start = time.perf_counter()
    if not options.alternatives:
        plan = planner.plan(workload, remember=not options.independent)
        return _Planned(plan, (time.perf_counter() - start) * 1000)
    plan, found = planner.choose(workload, remember=not options.independent)
    elapsed = (time.perf_counter() - start) * 1000
    return _Planned(plan, elapsed, {name: choices_json(choices) for name, choices in found.items()})


def _print(options: PlanOptions, plans: Sequence[_Planned]) -> None:
    data = [_json(each, command_words("plan", options)) for each in plans]
    if options.output in {Output.JSON, Output.YAML}:
        show_data(data[0] if len(data) == len(options.files) == 1 else data, options.output)
    elif options.output is Output.NAME:
        for each in plans:
            for gang in each.plan.gangs:
                typer.echo(safe(f"{each.plan.workload.name}/{gang.gang.name}"))
    else:
        wide = options.output is Output.WIDE
        short = Abbreviations() if wide else abbreviations(each.plan.domains for each in plans)
        show(plan_lines(data, short, wide=wide))
        show(line for each in plans for line in _choice_lines(each, short, screen(), wide=wide))
        show(["", *short.note()] if options.alternatives and short.used else short.note())


def _json(each: _Planned, command: Sequence[str]) -> Json:
    shown = plan_json(each.plan, command=command, elapsed_ms=each.elapsed_ms, alternatives=each.alternatives)
    return with_quota(shown, each.plan, each.question) if each.question else shown


def _choice_lines(planned: _Planned, short: Abbreviations, style: Style, *, wide: bool) -> Iterator[str]:
    for name, found in (planned.alternatives or {}).items():
        for choice in found:
            yield ""
            yield from choice_lines(name, choice, short, style, wide=wide)


def _read(options: PlanOptions) -> tuple[list[Workload], Snapshot]:
    """Return all inputs of the call; all faults of all files are reported together."""
    source = options.source
    if (*options.files, *named_files(source)).count("-") > 1:
        hint = "Use - for one FILE or for --cluster, not for both."
        raise UsageError("standard input can be read only once", hint)
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    written: list[WrittenWorkload] = []
    beside = NO_TOPOLOGIES
    notices: list[Notice] = []
    for file in options.files:
        found = collect(faults, lambda file=file: _file(options, file))  # type: ignore[misc]
        if found is not None:
            faults += found.faults
            beside |= found.topologies
            written += found.workloads
            notices += found.notices
    if not written and not faults:
        hint = "Name a file with a workflow, a PodCliqueSet or a DynamoGraphDeployment as well."
        raise UsageError("there are only topologies in the files, and nothing to plan", hint)
    with joined(faults, written):
        # Without a workload the pool, and so its backend's cluster, is not known.
        snapshot = read_cluster(faults, source, config if written else None, written[0].pool if written else None)
    workloads = _lowered(options, faults, config, written, levels, snapshot, beside)
    if faults or snapshot is None:
        raise SpecErrors(by_file(faults))
    more = (*notices, *topology_notices(config, levels, snapshot, workloads[0].pool))
    return workloads, replace(snapshot, notices=(*snapshot.notices, *more))


def _file(options: PlanOptions, file: str) -> Documents:
    return draft_documents(
        read_input(file), shown(file), sets=options.template.sets, set_strings=options.template.set_strings
    )


def _lowered(
    options: PlanOptions,
    faults: list[Fault],
    config: Config | None,
    written: list[WrittenWorkload],
    levels: Topology | TopologyChoice | None,
    snapshot: Snapshot | None,
    beside: Topologies,
) -> list[Workload]:
    source = options.source
    wanted = source.levels is not None or source.topology is not None
    if (source.config and config is None) or (wanted and levels is None) or snapshot is None:
        # Without a pool, files are not checked against one, and its own faults are known.
        faults += (fault for one in written for fault in one.faults)
        return []
    known = all_topologies(levels, snapshot, beside)
    kai = kai_levels(snapshot) if config is None else {}
    scene = CompileContext(
        lambda one: pool_for(config, source.pool, one.pool, levels_for(one, levels, known, kai), snapshot, beside),
        known,
        configured=config is not None,
        pool=source.pool,
        wrong=beside.wrong,
        templates=claim_templates(snapshot.devices),
    )
    return [
        replace(one, notices=(*one.notices, *drift_notices(levels, snapshot, beside, one.pool)))
        for one in lowered(faults, written, scene)
    ]
