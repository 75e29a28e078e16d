"""A plan as text for people: one line per gang, below it the domain of each constraint or the obstacles.

All of it is read from the JSON of a plan, so that a plan made here and one made by a service look the same.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from coterie.cli.output.formats import safe
from coterie.placement.option import Option
from coterie.rendering.command_line import words
from coterie.rendering.text import count, legend, share
from coterie.topology import display_names
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.ranges import fold

Json = dict[str, Any]

# The order is that of the total.
MARKS = {"placed": ("+", "green"), "waiting": ("?", "yellow"), "undecided": ("?", "yellow"), "impossible": ("x", "red")}


def plan_lines(plans: Sequence[Json], short: Abbreviations, *, wide: bool) -> Iterator[str]:
    """Yield the lines of some plans, and a total."""
    for plan in plans:
        nodes = share(plan["stats"]["pool_nodes"], plan["stats"]["nodes"], "node")
        yield safe(f"{plan['workload']}   pool {plan['pool']}, {nodes}")
        heads = [_head(group) for group in plan["groups"]]
        widths = [max((len(head[column]) for head in heads), default=0) for column in range(3)]
        for group, head in zip(plan["groups"], heads, strict=True):
            cells = "   ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True))
            yield f"  {_mark(group['verdict'])} " + safe(f"{cells}   {_summary(group, short)}".rstrip())
            yield from (safe(f"      {line}") for line in _details(group, plan["levels"], short, wide=wide))
        yield ""
    counted = Counter(group["verdict"] for plan in plans for group in plan["groups"])
    shown = [verdict for verdict in MARKS if counted[verdict] or verdict != "undecided"]
    groups = count(sum(counted.values()), "group")
    yield legend((MARKS[verdict][0], verdict) for verdict in shown if counted[verdict])
    yield f"{groups}: " + ", ".join(f"{counted[verdict]} {verdict}" for verdict in shown) + "."
    if any(group["refusal"] and group["refusal"]["ways_out"] for plan in plans for group in plan["groups"]):
        yield "Every way out was checked; to take one, repeat the command with its option."


def option_of(way: Json) -> str:
    """Return the options of a remedy as they are added to a command; none where the service names none."""
    return shlex.join(words(Option(one["name"], one["value"]) for one in way.get("options", ())))


def held_by(refusal: Json, short: Abbreviations) -> str:
    """Return the holders of a refusal with their GPUs."""
    return ", ".join(
        f"{one['owner']} {count(one['gpus'], 'GPU')}" + (f" in {short.domain(one['domain'])}" if one["domain"] else "")
        for one in refusal["holders"]
    )


def best_of(refusal: Json, short: Abbreviations) -> str:
    """Return the domains of a refusal that come closest."""
    return ", ".join(f"{short.domain(one['domain'])} fits {one['fits']} of {one['wanted']}" for one in refusal["best"])


def _head(group: Json) -> tuple[str, str, str]:
    asked = dict.fromkeys(f"{one['type']} {one['level']}" for one in group["constraints"])
    return group["name"], group["size"], ", ".join(asked)


def _summary(group: Json, short: Abbreviations) -> str:
    verdict, refusal = group["verdict"], group["refusal"]
    if verdict == "placed":
        return "" if group["constraints"] else _nodes(group["assignments"], short)
    return f"{verdict}  {refusal['reason']}" if refusal else str(verdict)


def _details(group: Json, levels: Sequence[str], short: Abbreviations, *, wide: bool) -> Iterator[str]:
    if group["verdict"] == "placed":
        yield from _landed(group, short)
        if left_out := group.get("left_out"):
            missing = f"{len(left_out)} of {count(group['wanted'], 'wanted task')}"
            yield f"no room for {missing}: {fold(left_out)}"
        if not group["optimal"]:
            yield "not proved to be the best: the search budget ran out first"
        if wide:
            yield from _tasks(group, levels)
    if group["refusal"]:
        yield from _refused(group["refusal"], short)


def _landed(group: Json, short: Abbreviations) -> Iterator[str]:
    """Yield the constraint tree with the domains and nodes of each branch."""
    placed = {one["task"]: one for one in group["assignments"]}
    rows = [
        (
            f"{'  ' * (len(one['path']) - 1)}{display_names.group_name(tuple(map(tuple, one['path'])))}",
            _domains(one, short),
            _nodes((placed.pop(task) for task in one["tasks"] if task in placed), short),
        )
        for one in group["constraints"]
    ]
    if placed and group["constraints"]:
        rows.append(("anywhere", "", _nodes(placed.values(), short)))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    for name, domains, nodes in rows:
        yield f"{name.ljust(widths[0])}  {domains.ljust(widths[1])}  {nodes}".rstrip()


def _domains(constraint: Json, short: Abbreviations) -> str:
    found = constraint["domains"]
    names = ", ".join(short.domain(domain) for domain in dict.fromkeys(map(tuple, found)))
    if constraint["satisfied"]:
        return names
    return f"missed: {names} (+{len(found) - 1})" if len(found) > 1 else f"missed: {names}"


def _nodes(assignments: Iterable[Json], short: Abbreviations) -> str:
    return fold(short.names(one["node"] for one in assignments))


def _tasks(group: Json, levels: Sequence[str]) -> Iterator[str]:
    rows = [("TASK", "NODE", *(level.upper() for level in levels))]
    for one in group["assignments"]:
        stays = " (runs)" if one.get("runs") else ""
        rows.append((one["task"], one["node"] + stays, *(one["domains"].get(level, "-") for level in levels)))
    rows += [(task, "(no room)", *("-" for _ in levels)) for task in group.get("left_out", ())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _refused(refusal: Json, short: Abbreviations) -> Iterator[str]:
    yield short.sentence(refusal["sentence"])
    if refusal["because"]:
        yield short.sentence(f"because  {refusal['because']}")
    if refusal["level"] and refusal["best"]:
        # Where groups compete, domains that would do are left out: shown are those that a little more room would help.
        word = "lacking" if refusal["together"] else "best"
        yield f"{word:7}  {best_of(refusal, short)}  ({count(refusal['domains'], refusal['level'])} in all)"
    if refusal["holders"]:
        yield f"held by  {held_by(refusal, short)}"
    ways = [(way["change"], option_of(way)) for way in refusal["ways_out"]]
    width = max((len(text) for text, _ in ways), default=0)
    for text, option in ways:
        yield f"way out  it {text.ljust(width)}  {option}".rstrip()


def _mark(verdict: str) -> str:
    text, colour = MARKS[verdict]
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return typer.style(text, fg=colour, bold=True)
