"""A plan as text for people: one line per gang, below it the domain of each constraint or the obstacles."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import typer

from coterie.cli.output.formats import safe
from coterie.gang.tree import Group, Task
from coterie.inspection.labels import pool_size
from coterie.placement.engine import Found
from coterie.placement.refusal import Refusal, Verdict
from coterie.planning.plan import ConstraintOutcome, GangPlan, Plan
from coterie.rendering import refusals
from coterie.rendering.causes import counted
from coterie.rendering.command_line import words
from coterie.rendering.text import legend, share
from coterie.topology import display_names
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.ranges import fold

_MARKS = {Verdict.PLACED: "+", Verdict.WAITING: "?", Verdict.UNDECIDED: "?", Verdict.IMPOSSIBLE: "x"}
_COLOURS = {Verdict.PLACED: "green", Verdict.WAITING: "yellow", Verdict.UNDECIDED: "yellow", Verdict.IMPOSSIBLE: "red"}
_TOTALS = {
    Verdict.PLACED: "placed",
    Verdict.WAITING: "waiting",
    Verdict.UNDECIDED: "undecided",
    Verdict.IMPOSSIBLE: "impossible",
}


def plan_lines(plans: Sequence[Plan], short: Abbreviations, *, wide: bool) -> Iterator[str]:
    """Yield the lines of some plans, and a total."""
    for plan in plans:
        pool = plan.workload.pool
        nodes = share(pool_size(plan.domains.cluster, pool), len(plan.domains), "node")
        yield safe(f"{plan.workload.name}   pool {pool.name}, {nodes}")
        heads = [_head(one) for one in plan.gangs]
        widths = [max((len(head[column]) for head in heads), default=0) for column in range(3)]
        for one, head in zip(plan.gangs, heads, strict=True):
            verdict = one.decision.verdict
            cells = "   ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True))
            yield f"  {_colour(_MARKS[verdict], verdict)} " + safe(f"{cells}   {_summary(one, short)}".rstrip())
            yield from (safe(f"      {line}") for line in _details(one, plan, short, wide=wide))
        yield ""
    counted = Counter(one.decision.verdict for plan in plans for one in plan.gangs)
    shown = [verdict for verdict in _TOTALS if counted[verdict] or verdict is not Verdict.UNDECIDED]
    groups = refusals.count(sum(counted.values()), "group")
    yield legend((_MARKS[verdict], _TOTALS[verdict]) for verdict in shown if counted[verdict])
    yield f"{groups}: " + ", ".join(f"{counted[verdict]} {_TOTALS[verdict]}" for verdict in shown) + "."
    if any(one.decision.refusal and one.decision.refusal.ways_out for plan in plans for one in plan.gangs):
        yield "Every way out was checked; repeat the command with its option to see the plan."


def _head(one: GangPlan) -> tuple[str, str, str]:
    asked = dict.fromkeys(
        f"{'required' if outcome.required else 'preferred'} {outcome.level}" for outcome in one.outcomes
    )
    return one.gang.name, refusals.sizes(one.gang), ", ".join(asked)


def _summary(one: GangPlan, short: Abbreviations) -> str:
    found, refusal = one.decision.found, one.decision.refusal
    if found:
        return "" if one.gang.groups else fold(short.names(found.nodes.values()))
    return f"{one.decision.verdict.value}  {refusal.reason.value}" if refusal else one.decision.verdict.value


def _details(one: GangPlan, plan: Plan, short: Abbreviations, *, wide: bool) -> Iterator[str]:
    found, refusal = one.decision.found, one.decision.refusal
    if found:
        yield from _landed(one, found, short)
        if found.left_out:
            wanted = sum(not task.needed for task in one.gang.all_tasks())
            missing = f"{len(found.left_out)} of {refusals.count(wanted, 'wanted task')}"
            yield f"no room for {missing}: {fold(found.left_out)}"
        if not found.optimal:
            yield "not proved to be the best: not every placement was tried"
        if wide:
            yield from _tasks(one, found, plan)
    if refusal:
        yield from _refused(refusal, one, plan, short)


def _landed(one: GangPlan, found: Found, short: Abbreviations) -> Iterator[str]:
    """Yield the constraint tree with the domains and nodes of each branch."""
    outcomes = {outcome.path: outcome for outcome in one.outcomes}
    rows = [
        (
            f"{'  ' * depth}{display_names.group_name(group.path)}",
            _domains(outcomes[group.path], short),
            _nodes(group.tasks, found, short),
        )
        for group, depth in _walk(one.gang.groups, 0)
    ]
    if one.gang.tasks and one.gang.groups:
        rows.append(("anywhere", "", _nodes(one.gang.tasks, found, short)))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    for name, domains, nodes in rows:
        yield f"{name.ljust(widths[0])}  {domains.ljust(widths[1])}  {nodes}".rstrip()


def _walk(groups: Sequence[Group], depth: int) -> Iterator[tuple[Group, int]]:
    for group in groups:
        yield group, depth
        yield from _walk(group.groups, depth + 1)


def _domains(outcome: ConstraintOutcome, short: Abbreviations) -> str:
    names = ", ".join(short.domain(domain) for domain in dict.fromkeys(outcome.domains))
    if outcome.satisfied:
        return names
    return f"missed: {names} (+{len(outcome.domains) - 1})" if len(outcome.domains) > 1 else f"missed: {names}"


def _nodes(tasks: Sequence[Task], found: Found, short: Abbreviations) -> str:
    return fold(short.names(found.nodes[task.name] for task in tasks if task.name in found.nodes))


def _tasks(one: GangPlan, found: Found, plan: Plan) -> Iterator[str]:
    levels = plan.domains.topology.names
    rows = [("TASK", "NODE", *(level.upper() for level in levels))]
    for task in one.gang.all_tasks():
        if task.name not in found.nodes:
            rows.append((task.name, "(no room)", *("-" for _ in levels)))
            continue
        values = plan.domains.values(found.positions[task.name])
        stays = " (runs)" if task.name in one.survivors else ""
        rows.append((task.name, found.nodes[task.name] + stays, *(values.get(level, "-") for level in levels)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _refused(refusal: Refusal, one: GangPlan, plan: Plan, short: Abbreviations) -> Iterator[str]:
    yield short.sentence(refusals.sentence(refusal, one.gang, plan.domains.topology, plan.domains.cluster))
    if refusal.tally:
        yield short.sentence(f"because  {counted(refusal.tally, plan.workload.pool.node_selector)}")
    if refusal.level and refusal.best:
        best = ", ".join(f"{short.domain(near.domain)} fits {near.fits} of {near.wanted}" for near in refusal.best)
        # Where groups compete, feasible domains are left out: shown are those where a little more capacity would help.
        word = "lacking" if refusal.together else "best"
        yield f"{word:7}  {best}  ({refusals.count(refusal.domains, refusal.level)} in all)"
    if refusal.holders:
        held = (
            f"{holder.owner} {refusals.count(holder.gpus, 'GPU')}"
            + (f" in {short.domain(holder.domain)}" if holder.domain else "")
            for holder in refusal.holders
        )
        yield f"held by  {', '.join(held)}"
    ways = [(refusals.way_out(way), shlex.join(words(way.options))) for way in refusal.ways_out]
    width = max((len(text) for text, _ in ways), default=0)
    for text, option in ways:
        yield f"way out  it {text.ljust(width)}  {option}"


def _colour(mark: str, verdict: Verdict) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return mark
    return typer.style(mark, fg=_COLOURS[verdict], bold=True)
