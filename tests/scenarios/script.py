"""Scenarios: text files that draw a cluster, ask for placements and show the answers.

A file is paragraphs. One that begins with `cluster` draws a cluster. The others have lines that change it, then a
question, a line `----` and the answer. `#` begins a comment.

    lose NODE                     the node is not ready any more, and its pods are gone
    end OWNER                     the pods of an owner are gone
    cordon|uncordon NODE, relabel NODE LEVEL=VALUE, node …, pod …

    place NAME: …                 where would it go now
    commit NAME: …                the same, and it runs there from now on
    empty NAME: …                 the same as `place`, on the empty cluster
    replace NAME                  what was committed, with its surviving tasks where they are

`beside NAME: …` below the lines of a gang is another one that follows it; the two are one question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coterie.gang import edits
from coterie.gang.tree import Gang
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found
from coterie.placement.family import decide_family
from coterie.placement.refusal import Decision, Refusal
from coterie.rendering import refusals
from coterie.topology import display_names
from coterie.topology.cluster import Member, Pod
from coterie.topology.domains import Domains
from tests.placement.twin import TwinCapacity, home, verify
from tests.planning.applied_manifests import Case, failings
from tests.scenarios.questions import Question, ask_family
from tests.scenarios.sketch import Drawing, draw

RULE = "----"


@dataclass
class ScenarioState:
    """The state of a scenario after its lines so far."""

    drawing: Drawing | None = None
    running: dict[str, list[Question]] = field(default_factory=dict)

    def answer(self, lines: Sequence[str]) -> list[str]:
        """Carry out the lines of a paragraph; return the answer to its question."""
        if lines[0].startswith("cluster"):
            self.drawing, self.running = draw(lines), {}
            return []
        if self.drawing is None:
            raise ValueError("nothing is drawn yet")
        for number, line in enumerate(lines):
            verb, _, rest = line.partition(" ")
            if verb in {"place", "commit", "empty", "replace"}:
                return list(self._asked(self.drawing, verb, [rest, *lines[number + 1 :]]))
            self.drawing.change(line)
        return []

    def _asked(self, drawing: Drawing, verb: str, lines: Sequence[str]) -> Iterator[str]:
        family = self.running[lines[0]] if verb == "replace" else ask_family(lines, drawing.topology)
        name = family[0].gang.name
        anchors = {}
        if verb == "replace":
            anchors = {pod.member.task: pod.node for pod in drawing.pods if pod.member and pod.member.workload == name}
        room = TwinCapacity.EMPTY if verb == "empty" else TwinCapacity.NOW
        decisions = _decisions(family, drawing.domains(), anchors, room)
        assert decisions == _decisions(family, drawing.domains(reverse=True), anchors, room), "the order matters"
        _check(family, decisions, drawing.domains(), anchors, room)
        for number, (question, decision) in enumerate(zip(family, decisions, strict=True)):
            start = f"beside {question.gang.name}: " if number else ""
            if decision.found:
                first, *rest = _placed(decision.found, question, drawing)
            elif decision.refusal:
                before = [one.gang for one, found in zip(family[:number], decisions, strict=False) if found.found]
                whole = _whole([*before, question.gang], decisions)
                first, *rest = _refused(decision, decision.refusal, question, whole, drawing, anchors, room)
            yield from (start + first, *rest)
        if verb in {"commit", "replace"} and decisions[0].found:
            self.running[name] = family
            for question, decision in zip(family, decisions, strict=True):
                if decision.found:
                    _run(drawing, name, question, decision.found, anchors)


def _decisions(
    family: Sequence[Question], domains: Domains, anchors: Mapping[str, str], room: TwinCapacity
) -> list[Decision]:
    empty = Capacity.empty(domains)
    now = Capacity.now(domains) if room is TwinCapacity.NOW else empty
    budget = DEFAULT_BUDGET if family[0].budget is None else family[0].budget
    return decide_family([one.gang for one in family], now, empty, anchors=anchors, budget=budget)


def _whole(gangs: Sequence[Gang], decisions: Sequence[Decision]) -> Gang:
    """Return gangs as one: all that is needed, and what was placed of the rest."""
    placed = {task for decision in decisions if decision.found for task in decision.found.nodes}
    return edits.joined([edits.chosen(gang, placed) for gang in gangs])


def _check(
    family: Sequence[Question],
    decisions: Sequence[Decision],
    domains: Domains,
    anchors: Mapping[str, str],
    room: TwinCapacity,
) -> None:
    """Assert that all that was placed keeps the rules, also together."""
    placed = [(one.gang, each.found) for one, each in zip(family, decisions, strict=True) if each.found]
    if not placed:
        return
    nodes = {task: node for _, found in placed for task, node in found.nodes.items()}
    whole = _whole([gang for gang, _ in placed], decisions)
    assert verify(whole, domains, dataclasses.replace(placed[0][1], nodes=nodes), anchors, room) == []


def _run(drawing: Drawing, workload: str, question: Question, found: Found, anchors: Mapping[str, str]) -> None:
    for task in question.gang.all_tasks():
        if task.name in found.nodes and task.name not in anchors:
            member = Member(workload, question.gang.name, task.name)
            requests = dict(task.shape.requests)
            node = found.nodes[task.name]
            drawing.pods.append(Pod(f"{workload}/{task.name}", node, requests, workload, member=member))


def _placed(found: Found, question: Question, drawing: Drawing) -> Iterator[str]:
    domains = drawing.domains()
    missed = [f"{level} +{cost}" for level, cost in found.extra.items() if cost]
    yield ", ".join(["placed", *missed, *([] if found.optimal else ["not proved best"])])
    groups = {group.path: group for group in question.gang.walk()}
    rows = []
    for part in question.parts:
        met = []
        for path in part.constraints:
            nodes = [found.nodes[task.name] for task in groups[path].all_tasks() if task.name in found.nodes]
            homes = [home(domains, domains.cluster.position[node], path[-1][0]) for node in nodes]
            shown = ", ".join(dict.fromkeys("/".join(one) if one else "none" for one in homes))
            alone = len(set(homes)) == 1 and None not in homes
            met.append(f"{path[-1][0]} {shown}" if alone else f"{path[-1][0]} {shown}: MISSED")
        rows.append((part.name, "; ".join(met), drawing.picture(_nodes(found, part.tasks))))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        yield f"  {'  '.join(cell for cell, width in zip(cells, [*widths, 1], strict=True) if width)}".rstrip()
    if found.left_out:
        yield f"  left out {', '.join(found.left_out)}"


def _nodes(found: Found, tasks: Sequence[str]) -> list[str]:
    return [found.nodes[task] for task in tasks if task in found.nodes]


def _refused(
    decision: Decision,
    refusal: Refusal,
    question: Question,
    whole: Gang,
    drawing: Drawing,
    anchors: Mapping[str, str],
    room: TwinCapacity,
) -> Iterator[str]:
    domains = drawing.domains()
    gang = question.gang
    at = (
        f" at {display_names.group_name(refusal.path)}"
        if refusal.path
        else f" at {refusal.level}"
        if refusal.level
        else ""
    )
    yield f"{decision.verdict.value}, {refusal.reason.value}{at}"
    yield f"  {refusals.message(refusal, gang, domains.topology, domains.cluster)}"
    if refusal.best:
        best = (f"{'/'.join(near.domain) or 'all'} {near.fits} of {near.wanted}" for near in refusal.best)
        yield f"  best     {', '.join(best)}"
    if refusal.holders:
        held = (f"{holder.owner} {holder.gpus} in {'/'.join(holder.domain) or 'all'}" for holder in refusal.holders)
        yield f"  held by  {', '.join(held)}"
    case = Case(whole, drawing.topology, list(drawing.nodes.values()), drawing.pods, anchors, room)
    for way in refusal.ways_out:
        assert failings(way, case) == []
        yield f"  way out  {refusals.way_out(way)}"


def replay(text: str) -> str:
    """Return a scenario with the answers that are given now."""
    stage = ScenarioState()
    return "\n\n".join(_paragraph(stage, paragraph) for paragraph in text.rstrip("\n").split("\n\n")) + "\n"


def _paragraph(stage: ScenarioState, paragraph: str) -> str:
    asked = paragraph.partition(f"\n{RULE}")[0]
    lines = [stripped for line in asked.splitlines() if (stripped := line.partition("#")[0].rstrip())]
    answer = stage.answer(lines) if lines else []
    return "\n".join([asked, RULE, *answer]) if answer else asked


def scenarios() -> list[Path]:
    """Return every scenario."""
    return sorted(Path(__file__).parent.glob("*.txt"))
