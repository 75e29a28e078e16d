"""The JSON of stored workflows for users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from coterie.backends.base.driver import TaskAttempt
from coterie.errors import Notice, UsageError
from coterie.gang.tree import Gang, Group
from coterie.inspection.audit import AuditOutcome, ConstraintFinding, judged, observed_domain
from coterie.inspection.audit_report import finding_json
from coterie.lifecycle import GroupRules, GroupState, PastAttempt, Presence, Spec, State, TaskState, from_json
from coterie.store import EventRecord, PlacementRecord, Summary, WorkflowRecord
from coterie.topology.domains import Domains

Json = dict[str, Any]


def when(at: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def row(summary: Summary) -> Json:
    """Return the fields of a workflow that lists show."""
    known = summary.digest
    waiting = known.get("waiting")
    return {
        "id": summary.id,
        "number": summary.number,
        "name": summary.name,
        "pool": summary.pool,
        "owner": summary.owner,
        "priority": summary.priority,
        "labels": dict(summary.labels),
        "status": summary.status,
        "submitted": when(summary.submitted_at),
        "started": when(summary.started_at),
        "ended": when(summary.ended_at),
        "message": known.get("message", ""),
        "finished": summary.finished,
        "cleaning": known.get("cleaning", False),
        "waiting": {"never": False, **waiting, "since": when(waiting["since"])} if waiting else None,
        "tasks": known.get("tasks", {}),
        "gpus": known.get("gpus", 0),
    }


def whole(
    stored: WorkflowRecord,
    placements: Iterable[PlacementRecord],
    folder: Callable[[TaskAttempt], str | None] = lambda _: None,
    decoded: tuple[Spec, State] | None = None,
) -> Json:
    """Return a workflow with its groups and tasks; `folder` returns the folder of an attempt's files for others.

    `decoded` are its spec and its state, if the caller has them already. One whose state cannot be read has no groups,
    and a message that says so: it can still be canceled and deleted.
    """
    seats = {(each.group, each.task, each.attempt): each for each in placements}
    try:
        spec, state = decoded or (from_json(Spec, stored.spec), from_json(State, stored.state))
    except UsageError as error:
        return _unreadable(stored, seats.values(), str(error))
    if [rules.name for rules in spec.groups] != [group.name for group in state.groups]:
        return _unreadable(stored, seats.values(), "a stored workflow state has other groups than its spec")
    groups = [
        {
            "name": group.name,
            "status": group.status.value,
            "attempt": group.attempt,
            "message": group.message,
            "waiting": waiting_of(group),
            "needs": list(rules.needs),
            "queued": when(group.queued),
            "started": when(group.started),
            "ended": when(group.ended),
            "ends_by": when(ends_by(rules, group)),
            "cleaning": group.cleaning,
            "tasks": [
                {
                    "name": task.name,
                    "lead": position == rules.lead,
                    **_task(task, seats.get(_slot(group, task))),
                    "output": folder(TaskAttempt(stored.id, group.name, task.name, task.attempt)),
                }
                for position, task in enumerate(group.tasks)
            ],
        }
        for rules, group in zip(spec.groups, state.groups, strict=True)
    ]
    return {
        **row(stored),
        "nodes": sorted({seat.node for seat in seats.values() if seat.held}),
        "created_from": stored.digest.get("file", ""),
        "canceled": _canceled(state),
        "changes": list(stored.digest.get("changes", ())),
        "groups": groups,
        "warnings": list(stored.notices),
    }


def _unreadable(stored: WorkflowRecord, seats: Iterable[PlacementRecord], why: str) -> Json:
    listed = row(stored)
    return {
        **listed,
        "message": listed["message"] or why,
        "nodes": sorted({seat.node for seat in seats if seat.held}),
        "created_from": stored.digest.get("file", ""),
        "canceled": None,
        "changes": list(stored.digest.get("changes", ())),
        "groups": [],
        "warnings": list(stored.notices),
    }


def _canceled(state: State) -> Json | None:
    """Return who requested the end of the workflow, when and why; None where it was not requested."""
    asked = state.cancel
    if asked is None:
        return None
    return {"by": asked.by or None, "at": when(asked.at), "message": asked.message, "force": asked.force}


def ends_by(rules: GroupRules, group: GroupState) -> float | None:
    """Return when a running group reaches its time limit, if it has one."""
    if group.ended is not None or group.started is None or rules.exec_timeout_s is None:
        return None
    return group.started + rules.exec_timeout_s


def waiting_of(group: GroupState) -> Json | None:
    """Return why a group is not placed yet."""
    why = group.waiting
    if why is None:
        return None
    return {"reason": why.reason, "message": why.message, "since": when(why.since), "never": why.never}


def waits(group: GroupState) -> bool:
    """Return whether a group is in the queue."""
    return not group.status.final and any(task.presence is Presence.QUEUED for task in group.tasks)


def event(found: EventRecord) -> Json:
    """Return an event."""
    return {
        "seq": found.seq,
        "at": when(found.at),
        "workflow": found.workflow,
        "pool": found.pool,
        "kind": found.kind,
        "message": found.message,
        "group": found.group,
        "task": found.task,
        "attempt": found.attempt,
        "data": dict(found.data),
    }


def notice(found: Notice) -> Json:
    """Return a warning; `field` names the field that it is about, where it is about one."""
    about = found.path[-1] if found.path else None
    return {
        "code": found.code,
        "message": found.message,
        "line": found.place.line if found.place else None,
        "field": about if isinstance(about, str) else None,
    }


def audit(state: State, gangs: Mapping[str, Gang], rows: Iterable[PlacementRecord], domains: Domains) -> Json:
    """Compare the nodes of running tasks, or their last ones, with their constraints, by the current labels."""
    seats = {(each.group, each.task, each.attempt): each for each in rows}
    counted: Counter[str] = Counter()
    groups: list[Json] = []
    for group in state.groups:
        there = {task.name: seat for task in group.tasks if (seat := seats.get(_slot(group, task))) is not None}
        nodes = {task: seat.node for task, seat in there.items()}
        asked = gangs[group.name].walk() if group.name in gangs else ()
        findings = [finding(one, nodes, domains) for one in asked]
        counted.update(each.outcome.value for each in findings)
        groups.append(
            {
                "name": group.name,
                "status": group.status.value,
                "constraints": [finding_json(each) for each in findings],
                "tasks": [
                    {"task": task, "node": seat.node, "domains": dict(seat.domains), "gpus": list(seat.gpus)}
                    for task, seat in there.items()
                ],
            }
        )
    return {"groups": groups, "summary": {outcome.value: counted[outcome.value] for outcome in AuditOutcome}}


def finding(group: Group, nodes: Mapping[str, str], domains: Domains) -> ConstraintFinding:
    """Judge a constraint; at a level that the pool has lost, there is nothing to judge by."""
    levels = domains.topology
    if group.level not in levels.names:
        why = f"the pool no longer has level {group.level}"
        return ConstraintFinding(group.path, group.required, AuditOutcome.UNOBSERVABLE, why=why)
    labels = [level.label for level in levels.levels[: levels.index(group.level) + 1]]
    placed = [(task.name, nodes[task.name]) for task in group.all_tasks() if task.name in nodes]
    spots = [observed_domain(task, node, labels, domains.cluster) for task, node in placed]
    return judged(group.path, spots, required=group.required)


def _slot(group: GroupState, task: TaskState) -> tuple[str, str, int]:
    return group.name, task.name, task.attempt


def _task(task: TaskState, seat: PlacementRecord | None) -> Json:
    return {
        "status": task.status.value,
        "attempt": task.attempt,
        "node": task.node or None,
        "domains": dict(seat.domains) if seat else {},
        "gpus": list(seat.gpus) if seat else [],
        "exit_code": task.exit_code,
        "message": task.message,
        "started": when(task.started),
        "ended": when(task.ended),
        "past": list(_past(task.past)),
    }


def _past(found: Iterable[PastAttempt]) -> Iterator[Json]:
    for each in found:
        yield {
            "attempt": each.attempt,
            "status": each.status.value,
            "node": each.node or None,
            "exit_code": each.exit_code,
            "message": each.message,
            "started": when(each.started),
            "ended": when(each.ended),
        }
