"""A plan as JSON for scripts; version 1 only ever gains fields."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from coterie.errors import Fault, Notice, field_path
from coterie.gang.tree import Path
from coterie.inspection.labels import pool_size
from coterie.placement.option import Option
from coterie.placement.refusal import Refusal, Tally
from coterie.planning.plan import GangPlan, Plan
from coterie.rendering import refusals
from coterie.rendering.causes import causes_json, counted
from coterie.rendering.command_line import words

VERSION = 1

Json = dict[str, Any]


def plan_json(
    plan: Plan,
    *,
    command: Sequence[str],
    elapsed_ms: float,
    alternatives: Mapping[str, Sequence[Json]] | None = None,
) -> Json:
    """Return the JSON object of one plan; `command` is the call that made it, to which remedies add an option.

    `alternatives` are the candidates of each gang, by name, where they are requested.
    """
    groups = [_group(one, plan, command) for one in plan.gangs]
    if alternatives is not None:
        groups = [{**group, "alternatives": list(alternatives[group["name"]])} for group in groups]
    return {
        "version": VERSION,
        "workload": plan.workload.name,
        "kind": plan.workload.kind,
        "pool": plan.workload.pool.name,
        "levels": list(plan.domains.topology.names),
        "verdict": plan.verdict.value,
        "groups": groups,
        "warnings": [_notice(notice) for notice in plan.notices],
        "stats": {
            "nodes": len(plan.domains),
            "pool_nodes": pool_size(plan.domains.cluster, plan.workload.pool),
            "pods": sum(len(one.gang.all_tasks()) for one in plan.gangs),
            "elapsed_ms": round(elapsed_ms, 3),
        },
    }


def errors_json(faults: Sequence[Fault], others: Sequence[Json] = ()) -> Json:
    """Return the JSON object in place of an answer: faults of the input, and `others` of the same shape."""
    return {"version": VERSION, "errors": [*(_fault(fault) for fault in faults), *others]}


def _group(one: GangPlan, plan: Plan, command: Sequence[str]) -> Json:
    found, refusal, tasks = one.decision.found, one.decision.refusal, one.gang.all_tasks()
    wanted = sum(not task.needed for task in tasks)
    assignments: list[Mapping[str, Any]] = []
    if found:
        assignments = [
            {
                "task": task.name,
                "node": found.nodes[task.name],
                "gpus": task.shape.gpus,
                "domains": plan.domains.values(found.positions[task.name]),
                **({"runs": True} if task.name in one.survivors else {}),
            }
            for task in tasks
            if task.name in found.nodes
        ]
    return {
        "name": one.gang.name,
        "size": refusals.sizes(one.gang),
        "verdict": one.decision.verdict.value,
        "optimal": found.optimal if found else False,
        "assignments": assignments,
        **({"left_out": list(found.left_out) if found else [], "wanted": wanted} if wanted else {}),
        "constraints": [
            {
                "path": _path(outcome.path),
                "level": outcome.level,
                "type": "required" if outcome.required else "preferred",
                "satisfied": outcome.satisfied,
                "domains": [list(domain) for domain in outcome.domains],
                "tasks": [task.name for task in group.tasks],
            }
            for group, outcome in zip(one.gang.walk(), one.outcomes, strict=True)
        ],
        "refusal": _refusal(refusal, one, plan, command) if refusal else None,
    }


def _refusal(refusal: Refusal, one: GangPlan, plan: Plan, command: Sequence[str]) -> Json:
    asked = (refusal, one.gang, plan.domains.topology, plan.domains.cluster)
    selector = plan.workload.pool.node_selector
    return {
        "reason": refusal.reason.value,
        "message": refusals.message(*asked, selector),
        "sentence": refusals.sentence(*asked),
        "because": counted(refusal.tally, selector) if refusal.tally else None,
        "path": _path(refusal.path),
        "together": [_path(path) for path in refusal.together],
        "level": refusal.level,
        "domains": refusal.domains,
        "best": [{"domain": list(near.domain), "fits": near.fits, "wanted": near.wanted} for near in refusal.best],
        "holders": [
            {"owner": holder.owner, "gpus": holder.gpus, "domain": list(holder.domain)} for holder in refusal.holders
        ],
        "counted": _tally(refusal.tally) if refusal.tally else None,
        "causes": causes_json(refusal.tally),
        "ways_out": [way_out_json(refusals.way_out(way), command, way.options) for way in refusal.ways_out],
    }


def way_out_json(change: str, command: Sequence[str], options: Sequence[Option]) -> Json:
    """Return a remedy as data; without options there is no command that shows its effect."""
    return {
        "change": change,
        "command": shlex.join([*command, *words(options)]) if options else "",
        "options": [option._asdict() for option in options],
    }


def _tally(tally: Tally) -> Json:
    return {
        "task": tally.task,
        "alike": tally.alike,
        "domain": list(tally.domain),
        "nodes": tally.nodes,
        "good": tally.good,
        "room": tally.room,
    }


def _path(path: Path) -> list[list[str]]:
    return [list(step) for step in path]


def _notice(notice: Notice) -> Json:
    return {
        "code": notice.code,
        "message": notice.message,
        "line": notice.place.line if notice.place else None,
    }


def fault_json(fault: Fault) -> Json:
    """Return the message and the place of a fault."""
    place = fault.place
    return {
        "message": fault.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "hint": fault.hint,
    }


def _fault(fault: Fault) -> Json:
    return {
        "code": fault.code.value,
        **fault_json(fault),
        **({"type": fault.type.value, "field": fault.field or field_path(fault.path)} if fault.type else {}),
    }
