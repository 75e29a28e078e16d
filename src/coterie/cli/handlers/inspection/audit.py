"""`coterie audit`: running pods against their constraints."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.source import LIVE, read_source, shown, warn
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import screen, show, show_data
from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.inspection.audit import (
    Audit,
    AuditedGang,
    AuditedTask,
    AuditOutcome,
    ConstraintFinding,
    GangProgress,
    audit,
)
from coterie.inspection.audit_report import audit_json
from coterie.rendering.text import Ink, Style, count, cut, legend, paint, table, visible
from coterie.sources import Snapshot
from coterie.topology import display_names
from coterie.topology.abbreviations import Abbreviations

COMMAND = "kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json"
_HINT = f"Take the snapshot with its gangs: {COMMAND} > snapshot.json"
_MARKS = {AuditOutcome.HELD: "+", AuditOutcome.MISSED: "~", AuditOutcome.UNOBSERVABLE: "?", AuditOutcome.VIOLATED: "x"}
_WORST = list(_MARKS)
_COLOURS = {"+": "green", "~": "yellow", "?": "yellow", "x": "red"}
_SHOUTED = {AuditOutcome.VIOLATED: "VIOLATED"}


def run(source: str, output: Output) -> None:
    """Audit the gangs of a snapshot or of a live cluster, print the findings, and exit by the worst of them."""
    snapshot = _read(source)
    found = audit(snapshot)
    match output:
        case Output.JSON | Output.YAML:
            show_data(audit_json(found), output)
        case Output.NAME:
            show(visible(f"{gang.asked.namespace}/{gang.asked.name}") for gang in found.gangs)
        case _:
            show(_lines(found, screen(), wide=output is Output.WIDE))
    warn((*snapshot.notices, *_nothing(snapshot, source)))
    raise typer.Exit(_code(found))


def _read(source: str) -> Snapshot:
    """Return a snapshot with its gangs; raise SpecErrors for one that should have some and has none."""
    snapshot = read_source(source, gangs=True)
    if source.startswith(LIVE):
        return snapshot
    if snapshot.pod_groups is None:
        message = "a cluster file has no gangs; an audit needs the objects of a cluster"
        raise SpecErrors([Fault(message, hint=_HINT, place=Place(shown(source)))])
    if snapshot.gang_pods and not snapshot.pod_groups:
        pods = len(snapshot.gang_pods)
        verb = "belongs" if pods == 1 else "belong"
        message = f"{count(pods, 'pod')} in it {verb} to PodGroups, but there are no PodGroups in it"
        raise SpecErrors([Fault(message, hint=_HINT, place=Place(shown(source)))])
    return snapshot


def _nothing(snapshot: Snapshot, source: str) -> Iterator[Notice]:
    if not snapshot.pod_groups:
        message = "there are no PodGroups of KAI in it, so there is nothing to audit"
        more = "" if source.startswith(LIVE) else f"; with PodGroups: {COMMAND}"
        yield Notice("NoPodGroups", message + more, Place(shown(source)))


def _code(found: Audit) -> Exit:
    if found.count(AuditOutcome.VIOLATED):
        return Exit.NEVER_FITS
    return Exit.MUST_WAIT if any(gang.doubtful for gang in found.gangs) else Exit.DONE


def _lines(found: Audit, style: Style, *, wide: bool) -> Iterator[str]:
    short = Abbreviations() if wide else _names(found)
    for gang in found.gangs:
        yield _head(gang, style)
        if gang.why:
            yield f"    {visible(short.sentence(gang.why))}"
        yield from _tree(gang, short, style, wide=wide)
        if wide:
            yield from (f"    {line}" for line in table(list(_seats(gang))))
        yield ""
    if found.unconstrained:
        yield f"{count(found.unconstrained, 'other PodGroup')} without topology."
    yield from short.note()
    if any(found.count(outcome) for outcome in AuditOutcome):
        yield legend((mark, _SHOUTED.get(one, one.value)) for one, mark in _MARKS.items() if found.count(one))
    yield _totals(found)


def _names(found: Audit) -> Abbreviations:
    """Return the short forms of the domains and nodes that gangs run in."""
    kinds: dict[str, set[str]] = {}
    nodes = set()
    for seat in (seat for gang in found.gangs for seat in gang.seats):
        nodes.add(seat.node)
        for level, value in seat.domains.items():
            kinds.setdefault(level, set()).add(value)
    return Abbreviations(*kinds.values(), nodes - {""})


def _head(gang: AuditedGang, style: Style) -> str:
    outcomes = [finding.outcome for finding in gang.findings]
    mark = _MARKS[max(outcomes, key=_WORST.index)] if outcomes else "+"
    mark = "?" if gang.state is GangProgress.INCOMPLETE and mark != "x" else mark
    asked = gang.asked
    placed = sum(1 for seat in gang.seats if seat.node)
    tasks = f"{placed} of {count(len(gang.seats), 'task')} placed"
    title = visible(f"{asked.workload}/{asked.group}   {gang.state.value}, {tasks}   {asked.namespace}/{asked.name}")
    return paint([Ink(mark, _COLOURS[mark]), Ink(f" {title}")], style)


def _tree(gang: AuditedGang, short: Abbreviations, style: Style, *, wide: bool) -> Iterator[str]:
    """Yield one line for each constraint, indented like the tree, with its outcome."""
    rows = []
    for finding in gang.findings:
        kind = "required" if finding.required else "preferred"
        depth = "  " * (len(finding.path) - 1)
        name = visible(f"{depth}{display_names.group_name(finding.path)}") if finding.path else "(not read)"
        word = _SHOUTED.get(finding.outcome, finding.outcome.value)
        rows.append((name, kind if finding.path else "", word, visible(_said(finding, short))))
    for finding, line in zip(gang.findings, table(rows), strict=True):
        mark = _MARKS[finding.outcome]
        room = len(line) if wide or finding.outcome is AuditOutcome.VIOLATED else style.width - 6
        yield "    " + paint([Ink(mark, _COLOURS[mark]), Ink(f" {cut(line, room, style.symbols.more)}")], style)


def _said(finding: ConstraintFinding, short: Abbreviations) -> str:
    domains = ", ".join(short.domain(domain) for domain in finding.domains)
    why = short.sentence(finding.why)
    match finding.outcome:
        case AuditOutcome.HELD:
            return domains
        case AuditOutcome.MISSED:
            return f"{domains} ({why})"
        case _:
            return why


def _seats(gang: AuditedGang) -> Iterator[tuple[str, ...]]:
    levels = gang.asked.levels.names
    yield ("TASK", "POD", "NODE", *(visible(level).upper() for level in levels))
    for seat in gang.seats:
        yield (*_place(seat), *(visible(seat.domains.get(level, "-")) for level in levels))


def _place(seat: AuditedTask) -> tuple[str, str, str]:
    return visible(seat.task), visible(seat.pod or "(no pod)"), visible(seat.node or "(no node)")


def _totals(found: Audit) -> str:
    outcomes = ", ".join(f"{found.count(outcome)} {_SHOUTED.get(outcome, outcome.value)}" for outcome in AuditOutcome)
    states = found.states()
    gangs = ", ".join(f"{states[state]} {state.value}" for state in GangProgress if states[state])
    total = count(sum(len(gang.findings) for gang in found.gangs), "constraint")
    return f"{count(len(found.gangs), 'gang')}{f' ({gangs})' if gangs else ''}, {total}: {outcomes}."
