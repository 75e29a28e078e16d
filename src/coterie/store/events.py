"""Events in the order in which they were committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, func, insert, select

from coterie.store.databases.columns import LARGEST
from coterie.store.records import EventRecord, Json, NewEvent
from coterie.store.tables import events

MOST = 10_000

_COLUMNS = tuple(events.c[name] for name in EventRecord.__dataclass_fields__)
_LAST = select(func.coalesce(func.max(events.c.seq), 0))


def rows(new: Iterable[NewEvent], workflow: str = "", pool: str = "") -> list[dict[str, Json]]:
    """Return events as rows; an event without a workflow or pool belongs to the given one."""
    return [
        {
            "at": one.at,
            "kind": one.kind,
            "message": one.message,
            "workflow": one.workflow or workflow,
            "pool": one.pool or pool,
            "group": one.group,
            "task": one.task,
            "attempt": one.attempt,
            "data": dict(one.data),
        }
        for one in new
    ]


def append(tx: Connection, new: Sequence[Mapping[str, Json]]) -> None:
    """Insert rows of events."""
    if new:
        tx.execute(insert(events), new)


def after(tx: Connection, seq: int, workflow: str | None, limit: int) -> tuple[EventRecord, ...]:
    """Return the events after a number, of one workflow or of all."""
    wanted = select(*_COLUMNS).where(events.c.seq > max(-1, min(seq, LARGEST))).order_by(events.c.seq)
    if workflow is not None:
        wanted = wanted.where(events.c.workflow == workflow)
    return tuple(EventRecord(*row) for row in tx.execute(wanted.limit(max(1, min(limit, MOST)))))


def latest(tx: Connection, workflow: str, kind: str, limit: int) -> tuple[EventRecord, ...]:
    """Return the latest events of one kind of a workflow, the newest first."""
    wanted = select(*_COLUMNS).where(events.c.workflow == workflow, events.c.kind == kind)
    return tuple(EventRecord(*row) for row in tx.execute(wanted.order_by(events.c.seq.desc()).limit(limit)))


def of_kinds(tx: Connection, seq: int, kinds: Sequence[str], limit: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the kind and the workflow of events of some kinds after a number, and the number to continue after."""
    newest = last(tx)
    wanted = select(events.c.seq, events.c.kind, events.c.workflow).where(events.c.seq > seq, events.c.kind.in_(kinds))
    found = tx.execute(wanted.order_by(events.c.seq).limit(limit)).all()
    seen = found[-1].seq if len(found) == limit else max(newest, seq)
    return tuple((row.kind, row.workflow) for row in found), seen


def last(tx: Connection) -> int:
    """Return the number of the newest event, 0 before the first."""
    return int(tx.execute(_LAST).scalar_one())
