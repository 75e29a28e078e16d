"""The leader's save: the next states of many workflows, with all their rows, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, true, update

from coterie.errors import Conflict
from coterie.store import events, leases, requests
from coterie.store.records import LEADER, Json, PartRecord, PlacementRecord, Slot, WorkflowChange
from coterie.store.tables import placements, state_parts, workflows

_STEP = (
    update(workflows)
    .where(workflows.c.id == bindparam("of"), workflows.c.version == bindparam("read"))
    .values(version=workflows.c.version + 1)
)
_SLOT = (
    (placements.c.workflow == bindparam("of"))
    & (placements.c.group == bindparam("in_group"))
    & (placements.c.task == bindparam("for_task"))
    & (placements.c.attempt == bindparam("numbered"))
)
_RELEASE = update(placements).where(_SLOT).values(held=False)
_REPLACE = delete(placements).where(_SLOT)
_REPLACE_PART = delete(state_parts).where(
    state_parts.c.workflow == bindparam("of"), state_parts.c.number == bindparam("numbered")
)
_REMOVE_PARTS = delete(state_parts).where(
    state_parts.c.workflow == bindparam("of"), state_parts.c.number >= bindparam("count")
)
_ORDER = (placements.c.workflow, placements.c.attempt, placements.c.group, placements.c.task)


class StaleError(Exception):
    """Raised inside a save when a workflow has changed since it was read; the transaction must not be committed."""


def save(tx: Connection, changes: Sequence[WorkflowChange], fence: int) -> int:
    """Write all changes and return the number of the newest event; raise `Conflict` or `StaleError` otherwise."""
    leases.check(tx, LEADER, fence)
    if not changes:
        return events.last(tx)
    written = tx.execute(
        _STEP,
        [
            {
                "of": one.id,
                "read": one.version,
                "status": one.status,
                "state": dict(one.state),
                "started_at": one.started_at,
                "ended_at": one.ended_at,
                "finished": one.finished,
                "digest": dict(one.digest),
            }
            for one in changes
        ],
    )
    if written.rowcount != len(changes):
        raise StaleError
    if parts := [_part(one.id, part) for one in changes for part in one.parts]:
        tx.execute(_REPLACE_PART, [{"of": part["workflow"], "numbered": part["number"]} for part in parts])
        tx.execute(insert(state_parts), parts)
    # A state may have had more parts: another release may divide it otherwise, and a forced end makes it whole.
    if divided := [{"of": one.id, "count": _part_count(one)} for one in changes if one.parts or not _part_count(one)]:
        tx.execute(_REMOVE_PARTS, divided)
    events.append(tx, [row for one in changes for row in events.rows(one.events, one.id)])
    if placed := [_row(one.id, where) for one in changes for where in one.placed]:
        tx.execute(_REPLACE, [_slot(one.id, _where(where)) for one in changes for where in one.placed])
        tx.execute(insert(placements), placed)
    if released := [_slot(one.id, slot) for one in changes for slot in one.released]:
        tx.execute(_RELEASE, released)
    requests.drop(tx, [seq for one in changes for seq in one.requests])
    return events.last(tx)


def placed(tx: Connection, workflow: str) -> tuple[PlacementRecord, ...]:
    """Return the past and present placements of a workflow's tasks, by attempt."""
    return tuple(
        _placement(row)
        for row in tx.execute(select(placements).where(placements.c.workflow == workflow).order_by(*_ORDER))
    )


def held(tx: Connection) -> Mapping[str, tuple[PlacementRecord, ...]]:
    """Return the placements that hold capacity now, by workflow."""
    found: dict[str, list[PlacementRecord]] = {}
    for row in tx.execute(select(placements).where(placements.c.held == true()).order_by(*_ORDER)):
        found.setdefault(row.workflow, []).append(_placement(row))
    return {workflow: tuple(mine) for workflow, mine in found.items()}


def nodes(tx: Connection, idents: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the nodes on which workflows hold capacity now, sorted; workflows without any are left out."""
    held_by = (placements.c.held == true()) & placements.c.workflow.in_(idents)
    found: dict[str, list[str]] = {}
    for workflow, node in tx.execute(select(placements.c.workflow, placements.c.node).where(held_by).distinct()):
        found.setdefault(workflow, []).append(node)
    return {workflow: sorted(mine) for workflow, mine in found.items()}


def stale(tx: Connection, changes: Sequence[WorkflowChange]) -> Conflict:
    """Return the error that names the changes which blocked a save; called after its rollback."""
    times = Counter(one.id for one in changes)
    late = [one.id for one in changes if times[one.id] > 1 or _version(tx, one.id) != one.version]
    return Conflict(
        f"{', '.join(dict.fromkeys(late))}: changed or deleted by someone else in the meantime; nothing was saved",
        "Read it again and retry.",
    )


def _version(tx: Connection, workflow: str) -> int | None:
    return tx.execute(select(workflows.c.version).where(workflows.c.id == workflow)).scalar()


def _where(placement: PlacementRecord) -> Slot:
    return placement.group, placement.task, placement.attempt


def _slot(workflow: str, slot: Slot) -> dict[str, Json]:
    group, task, attempt = slot
    return {"of": workflow, "in_group": group, "for_task": task, "numbered": attempt}


def _part_count(one: WorkflowChange) -> int:
    """Return the number of parts of a state, 0 where it is stored whole."""
    found = one.state.get("parts")
    return found if isinstance(found, int) else 0


def _part(workflow: str, one: PartRecord) -> dict[str, Json]:
    return {"workflow": workflow, "number": one.number, "data": list(one.data), "queued": list(one.queued) or None}


def _row(workflow: str, one: PlacementRecord) -> dict[str, Json]:
    return {
        "workflow": workflow,
        "group": one.group,
        "task": one.task,
        "attempt": one.attempt,
        "node": one.node,
        "gpus": list(one.gpus),
        "domains": dict(one.domains),
        "held": one.held,
    }


def _placement(row: Row[Json]) -> PlacementRecord:
    return PlacementRecord(row.group, row.task, row.attempt, row.node, tuple(row.gpus), row.domains, row.held)
