"""User requests concerning workflows, written by any replica for the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from coterie.errors import Conflict, Hint, Mention
from coterie.store import workflows
from coterie.store.databases.columns import LARGEST
from coterie.store.records import Json, RequestRecord
from coterie.store.tables import requests

MOST = 10_000

_COLUMNS = tuple(requests.c[name] for name in RequestRecord.__dataclass_fields__)
_DROP = delete(requests).where(requests.c.seq == bindparam("number"))


def add(tx: Connection, workflow: str, observation: Mapping[str, Json], at: float) -> int:
    """Store a request concerning a workflow and return its number."""
    known = workflows.summary(tx, workflow)
    row = {"workflow": known.id, "observation": dict(observation), "at": at}
    return int(tx.execute(insert(requests).returning(requests.c.seq), row).scalar_one())


def after(tx: Connection, seq: int, limit: int) -> tuple[RequestRecord, ...]:
    """Return the requests after a number, oldest first."""
    wanted = select(*_COLUMNS).where(requests.c.seq > max(-1, min(seq, LARGEST))).order_by(requests.c.seq)
    return tuple(RequestRecord(*row) for row in tx.execute(wanted.limit(max(1, min(limit, MOST)))))


def of(tx: Connection, workflow: str) -> tuple[RequestRecord, ...]:
    """Return the requests concerning a workflow, oldest first."""
    wanted = select(*_COLUMNS).where(requests.c.workflow == workflow).order_by(requests.c.seq)
    return tuple(RequestRecord(*row) for row in tx.execute(wanted.limit(MOST)))


def refuse_retried(tx: Connection, workflow: str) -> None:
    """Raise `Conflict` for a workflow whose retry is pending."""
    if any(each.observation.get("kind") == "retry" for each in of(tx, workflow)):
        raise Conflict(
            f'workflow "{workflow}" is about to run again, as a user asked for a retry, and cannot be deleted',
            Hint(f"Cancel it first: coterie cancel {workflow}", Mention("coterie cancel", workflow)),
        )


def drop(tx: Connection, seqs: Sequence[int]) -> None:
    """Delete requests; missing ones are ignored."""
    if seqs:
        tx.execute(_DROP, [{"number": seq} for seq in seqs])
