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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found
from coterie.placement.explain import decide
from coterie.placement.refusal import Decision, Refusal
from coterie.planning import words
from coterie.topology.cluster import Member, Pod
from coterie.topology.domains import Domains
from tests.placement.twin import Room, home, verify
from tests.planning.applied import Case, failings
from tests.scenarios.asking import Question, ask
from tests.scenarios.drawing import Drawing, draw

RULE = "----"


@dataclass
class Stage:
    """What a scenario has built up so far."""

    drawing: Drawing | None = None
    running: dict[str, Question] = field(default_factory=dict)

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
        question = self.running[lines[0]] if verb == "replace" else ask(lines, drawing.topology)
        name = question.gang.name
        anchors = {}
        if verb == "replace":
            anchors = {pod.member.task: pod.node for pod in drawing.pods if pod.member and pod.member.workload == name}
        room = Room.EMPTY if verb == "empty" else Room.NOW
        decision = _decision(question, drawing.domains(), anchors, room)
        assert decision == _decision(question, drawing.domains(reverse=True), anchors, room), "the order matters"
        if decision.found:
            yield from _placed(decision.found, question, drawing, anchors, room)
        elif decision.refusal:
            yield from _refused(decision, decision.refusal, question, drawing, anchors, room)
        if verb in {"commit", "replace"} and decision.found:
            self.running[name] = question
            _run(drawing, question, decision.found, anchors)


def _decision(question: Question, domains: Domains, anchors: Mapping[str, str], room: Room) -> Decision:
    empty = Capacity.empty(domains)
    now = Capacity.now(domains) if room is Room.NOW else empty
    budget = DEFAULT_BUDGET if question.budget is None else question.budget
    return decide(question.gang, now, empty, anchors=anchors, budget=budget)


def _run(drawing: Drawing, question: Question, found: Found, anchors: Mapping[str, str]) -> None:
    name = question.gang.name
    for task in question.gang.all_tasks():
        if task.name not in anchors:
            member = Member(name, name, task.name)
            requests = dict(task.shape.requests)
            drawing.pods.append(Pod(f"{name}/{task.name}", found.nodes[task.name], requests, name, member=member))


def _placed(
    found: Found, question: Question, drawing: Drawing, anchors: Mapping[str, str], room: Room
) -> Iterator[str]:
    domains = drawing.domains()
    assert verify(question.gang, domains, found, anchors, room) == []
    missed = [f"{level} +{cost}" for level, cost in found.extra.items() if cost]
    yield ", ".join(["placed", *missed, *([] if found.optimal else ["not proved best"])])
    groups = {group.path: group for group in question.gang.walk()}
    rows = []
    for part in question.parts:
        met = []
        for path in part.constraints:
            nodes = [found.nodes[task.name] for task in groups[path].all_tasks()]
            homes = [home(domains, domains.cluster.position[node], path[-1][0]) for node in nodes]
            shown = ", ".join(dict.fromkeys("/".join(one) if one else "none" for one in homes))
            alone = len(set(homes)) == 1 and None not in homes
            met.append(f"{path[-1][0]} {shown}" if alone else f"{path[-1][0]} {shown}: MISSED")
        rows.append((part.name, "; ".join(met), drawing.picture([found.nodes[task] for task in part.tasks])))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        yield f"  {'  '.join(cell for cell, width in zip(cells, [*widths, 1], strict=True) if width)}".rstrip()


def _refused(
    decision: Decision,
    refusal: Refusal,
    question: Question,
    drawing: Drawing,
    anchors: Mapping[str, str],
    room: Room,
) -> Iterator[str]:
    domains = drawing.domains()
    gang = question.gang
    at = f" at {words.group_name(refusal.path)}" if refusal.path else f" at {refusal.level}" if refusal.level else ""
    yield f"{decision.verdict.value}, {refusal.reason.value}{at}"
    yield f"  {words.message(refusal, gang, domains.topology, domains.cluster)}"
    if refusal.best:
        best = (f"{'/'.join(near.domain) or 'all'} {near.fits} of {near.wanted}" for near in refusal.best)
        yield f"  best     {', '.join(best)}"
    if refusal.holders:
        held = (f"{holder.owner} {holder.gpus} in {'/'.join(holder.domain) or 'all'}" for holder in refusal.holders)
        yield f"  held by  {', '.join(held)}"
    case = Case(gang, drawing.topology, list(drawing.nodes.values()), drawing.pods, anchors, room)
    for way in refusal.ways_out:
        assert failings(way, case) == []
        yield f"  way out  {words.way_out(way)}"


def replay(text: str) -> str:
    """Return a scenario with the answers that are given now."""
    stage = Stage()
    return "\n\n".join(_paragraph(stage, paragraph) for paragraph in text.rstrip("\n").split("\n\n")) + "\n"


def _paragraph(stage: Stage, paragraph: str) -> str:
    asked = paragraph.partition(f"\n{RULE}")[0]
    lines = [stripped for line in asked.splitlines() if (stripped := line.partition("#")[0].rstrip())]
    answer = stage.answer(lines) if lines else []
    return "\n".join([asked, RULE, *answer]) if answer else asked


def scenarios() -> list[Path]:
    """Return every scenario."""
    return sorted(Path(__file__).parent.glob("*.txt"))
