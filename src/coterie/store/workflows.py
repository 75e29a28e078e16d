"""Workflows: insertion, queries, and deletion after their end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, Select, bindparam, false, func, insert, null, select, true, update

from coterie.errors import Conflict, CoterieError, Hint, Mention, NotFound
from coterie.store import events, pools
from coterie.store.databases.columns import LARGEST, SafeText, dumps, loads, storable
from coterie.store.records import (
    NewEvent,
    NewWorkflow,
    QueuedWorkflow,
    Summary,
    Upload,
    WorkflowPage,
    WorkflowQuery,
    WorkflowRecord,
)
from coterie.store.tables import counters, files, labels, state_parts, submissions, workflows
from coterie.store.tables import events as event_table

MOST = 1000

_SUMMARY: tuple[Column[Any], ...] = tuple(workflows.c[name] for name in Summary.__dataclass_fields__)
_WHOLE: Select[Any] = select(*_SUMMARY, submissions.c.spec, workflows.c.state).join(
    submissions, submissions.c.workflow == workflows.c.id
)
_ONE = _WHOLE.where(workflows.c.id == bindparam("wanted"))
_ONE_SUMMARY: Select[Any] = select(*_SUMMARY).where(workflows.c.id == bindparam("wanted"))
_COUNT = (
    update(counters)
    .where(counters.c.name == bindparam("of"))
    .values(last=counters.c.last + 1)
    .returning(counters.c.last)
)
# Only one field of the digest: decoding the others of very many workflows would take most of the time.
_QUEUED = (
    select(
        workflows.c.id,
        workflows.c.pool,
        workflows.c.priority,
        workflows.c.number,
        workflows.c.digest["queued"].label("queued"),
    )
    .where(workflows.c.finished == false())
    .order_by(workflows.c.number.desc())
)
_PARTS = (
    select(state_parts.c.data)
    .where(state_parts.c.workflow == bindparam("wanted"), state_parts.c.number < bindparam("count"))
    .order_by(state_parts.c.number)
)
# Not a join, for which SQLite reads the parts of all finished workflows too.
_OF_UNFINISHED = state_parts.c.workflow.in_(select(workflows.c.id).where(workflows.c.finished == false()))
_UNFINISHED_PARTS = (
    select(state_parts.c.workflow, state_parts.c.data).where(_OF_UNFINISHED).order_by(state_parts.c.number)
)
_QUEUED_PARTS = (
    select(state_parts.c.workflow, state_parts.c.queued)
    .where(_OF_UNFINISHED, state_parts.c.queued.is_not(null()))
    .order_by(state_parts.c.number)
)
_TALLY = select(workflows.c.pool, workflows.c.status, func.count()).group_by(workflows.c.pool, workflows.c.status)


def submit(tx: Connection, several: Sequence[NewWorkflow]) -> list[tuple[WorkflowRecord, bool] | CoterieError]:
    """Store workflows under the next ids of their names, unless their owner's key has one; return whether each is new.

    A workflow that was checked against a stored pool needs that pool to be unchanged. One that cannot be stored has its
    error instead, and nothing of it is written.
    """
    found: list[tuple[WorkflowRecord, bool] | CoterieError] = []
    rows = _Rows()
    for new in several:
        if _key(new) in rows.keys:
            rows.write(tx)
        try:
            found.append(_submitted(tx, new, rows))
        except CoterieError as error:
            found.append(error)
    rows.write(tx)
    return found


class _Rows:
    """Rows beside those of the workflows themselves, written together."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()
        self.submissions: list[dict[str, Any]] = []
        self.labels: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def write(self, tx: Connection) -> None:
        """Insert all rows."""
        for table, rows in ((submissions, self.submissions), (labels, self.labels), (files, self.files)):
            if rows:
                tx.execute(insert(table), rows)
        events.append(tx, self.events)
        for written in (self.keys, self.submissions, self.labels, self.files, self.events):
            written.clear()


def _key(new: NewWorkflow) -> tuple[str, str] | None:
    """Return the owner and the key of a submission as the database compares them."""
    return None if new.client_key is None else (storable(new.owner), storable(new.client_key))


def _submitted(tx: Connection, new: NewWorkflow, rows: _Rows) -> tuple[WorkflowRecord, bool]:
    if new.client_key is not None:
        known = repeated(tx, new.owner, new.client_key, lambda _: new.fingerprint)
        if known is not None:
            return known, False
    if new.pool_version is not None:
        pools.unchanged(tx, new.pool, new.pool_version)
    ident = f"{new.name}-{_counted(tx, new.name)}"
    row: dict[str, Any] = {
        "id": ident,
        "name": new.name,
        "pool": new.pool,
        "owner": new.owner,
        "priority": new.priority,
        "labels": dict(new.labels),
        "submitted_at": new.submitted_at,
        "status": new.status,
        "finished": False,
        "version": 1,
        "digest": dict(new.digest),
        "notices": list(new.notices),
        "state": dict(new.state),
    }
    added = tx.execute(insert(workflows), {**row, "client_key": new.client_key, "fingerprint": new.fingerprint})
    (number,) = added.inserted_primary_key or (None,)
    rows.submissions.append(
        {
            "workflow": ident,
            "source": new.source,
            "file": new.file,
            "sets": list(new.sets),
            "set_strings": list(new.set_strings),
            "spec": dict(new.spec),
            "amendment": dict(new.amendment) if new.amendment else None,
            "rendered": dict(new.rendered) if new.rendered else None,
        }
    )
    if (key := _key(new)) is not None:
        rows.keys.add(key)
    rows.labels += ({"workflow": ident, "key": key, "value": value} for key, value in new.labels.items())
    rows.files += ({"workflow": ident, "path": path, "content": content} for path, content in new.files.items())
    rows.events += events.rows(new.events, ident, new.pool)
    row |= {"number": number, "started_at": None, "ended_at": None, "spec": dict(new.spec)}
    return WorkflowRecord(**_as_stored(row)), True


def repeated(tx: Connection, owner: str, key: str, fingerprint: Callable[[str], str]) -> WorkflowRecord | None:
    """Return the workflow that its owner stored under a key; raise `Conflict` if that was another submission.

    `fingerprint` returns the fingerprint that the new submission would have in the pool of the stored one.
    """
    wanted = select(workflows.c.id, workflows.c.pool, workflows.c.fingerprint)
    known = tx.execute(wanted.where(workflows.c.owner == owner, workflows.c.client_key == key)).first()
    if known is None:
        return None
    if known.fingerprint != fingerprint(known.pool):
        raise Conflict(
            f'the key "{key}" was used for another submission, {known.id}',
            "Use a new key for a new submission, and the same key only to repeat one exactly.",
        )
    return whole(tx, known.id)


def _as_stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row as a read would return them, which costs far more."""
    return {
        name: (value if value.isascii() and "\0" not in value else storable(value))
        if isinstance(value, str)
        else loads(dumps(value))
        if isinstance(value, dict | list)
        else value
        for name, value in row.items()
    }


def whole(tx: Connection, ident: str) -> WorkflowRecord:
    """Return a workflow with its spec and its state."""
    found = WorkflowRecord(*_found(tx, _ONE, ident))
    if not _divided(found):
        return found
    return _with_parts(found, tx.execute(_PARTS, {"wanted": ident, "count": found.state["parts"]}).scalars())


def summary(tx: Connection, ident: str) -> Summary:
    """Return the fields of a workflow that lists show."""
    return Summary(*_found(tx, _ONE_SUMMARY, ident))


def upload(tx: Connection, ident: str) -> Upload:
    """Return the user's submission."""
    sent = tx.execute(select(submissions).where(submissions.c.workflow == ident)).first()
    if sent is None:
        raise _unknown(ident)
    attached = tx.execute(select(files.c.path, files.c.content).where(files.c.workflow == ident).order_by(files.c.path))
    return Upload(
        sent.source,
        sent.file,
        tuple(sent.sets),
        tuple(sent.set_strings),
        {row.path: row.content for row in attached},
        sent.amendment,
        sent.rendered,
    )


def page(tx: Connection, query: WorkflowQuery, after: int | None, limit: int) -> WorkflowPage:
    """Return the newest workflows that were stored before number `after`."""
    size = max(1, min(limit, MOST))
    wanted = _matching(select(*_SUMMARY), query).order_by(workflows.c.number.desc()).limit(size + 1)
    if after is not None:
        wanted = wanted.where(workflows.c.number < max(0, min(after, LARGEST)))
    found = [Summary(*row) for row in tx.execute(wanted)]
    return WorkflowPage(tuple(found[:size]), found[size - 1].number if len(found) > size else None)


def missing(tx: Connection, idents: Collection[str]) -> set[str]:
    """Return the ids among these that no workflow has."""
    left, ordered = set(idents), sorted(idents)
    for first in range(0, len(ordered), MOST):
        some = ordered[first : first + MOST]
        left.difference_update(tx.execute(select(workflows.c.id).where(workflows.c.id.in_(some))).scalars())
    return left


def unfinished(tx: Connection) -> tuple[WorkflowRecord, ...]:
    """Return all workflows whose state may still change, oldest first."""
    wanted = _WHOLE.where(workflows.c.finished == false()).order_by(workflows.c.number)
    found = [WorkflowRecord(*row) for row in tx.execute(wanted)]
    parts: dict[str, list[Any]] = {}
    if any(map(_divided, found)):
        for row in tx.execute(_UNFINISHED_PARTS):
            parts.setdefault(row.workflow, []).append(row.data)
    return tuple(_with_parts(one, parts.get(one.id, ())) if _divided(one) else one for one in found)


def _divided(one: WorkflowRecord) -> bool:
    """Return whether the state of a workflow is stored in parts."""
    return isinstance(one.state.get("parts"), int)


def _with_parts(one: WorkflowRecord, parts: Iterable[Any]) -> WorkflowRecord:
    """Return a workflow with the parts of its state in place of their number, unless some are missing."""
    found = list(islice(parts, one.state["parts"]))
    return replace(one, state={**one.state, "parts": found}) if len(found) == one.state["parts"] else one


def versions(tx: Connection, idents: Collection[str]) -> Mapping[str, int]:
    """Return the versions of workflows, by id; those that do not exist are left out."""
    found = tx.execute(select(workflows.c.id, workflows.c.version).where(workflows.c.id.in_(list(idents))))
    return {row.id: row.version for row in found}


def queued(tx: Connection) -> tuple[QueuedWorkflow, ...]:
    """Return the unfinished workflows with their groups that are queued, newest first."""
    parts: dict[str, list[Any]] = {}
    for row in tx.execute(_QUEUED_PARTS):
        parts.setdefault(row.workflow, []).extend(row.queued)
    return tuple(
        QueuedWorkflow(row.id, row.pool, row.priority, row.number, parts.get(row.id) or row.queued)
        for row in tx.execute(_QUEUED)
    )


def tally(tx: Connection) -> Mapping[tuple[str, str], int]:
    """Return the number of workflows by pool and status."""
    return {(pool, status): count for pool, status, count in tx.execute(_TALLY)}


def delete(tx: Connection, ident: str, at: float, by: str = "") -> None:
    """Delete an ended workflow with all its rows; one event records that, with the user who did it."""
    one = summary(tx, ident)
    if not one.finished:
        raise Conflict(
            f'workflow "{ident}" is {one.status.lower()} and cannot be deleted yet',
            Hint(f"Cancel it first: coterie cancel {ident}", Mention("coterie cancel", ident)),
        )
    tx.execute(workflows.delete().where(workflows.c.id == ident))
    tx.execute(event_table.delete().where(event_table.c.workflow == ident))
    said = NewEvent(at, "Deleted", f"{ident} was deleted{f' by {by}' if by else ''}.")
    events.append(tx, events.rows([said], ident, one.pool))


def _counted(tx: Connection, name: str) -> int:
    number = tx.execute(_COUNT, {"of": name}).scalar()
    if number is None:
        tx.execute(insert(counters), {"name": name, "last": 1})
    return int(number or 1)


def _found(tx: Connection, wanted: Select[Any], ident: str) -> Sequence[Any]:
    row = tx.execute(wanted, {"wanted": ident}).first()
    if row is None:
        raise _unknown(ident)
    return row


def _unknown(ident: str) -> NotFound:
    return NotFound(f'there is no workflow "{ident}"', Hint("List them: coterie list", "coterie list"))


def _matching(wanted: Select[Any], query: WorkflowQuery) -> Select[Any]:
    for column, chosen in (
        (workflows.c.status, query.statuses),
        (workflows.c.pool, query.pools),
        (workflows.c.owner, query.owners),
    ):
        if chosen:
            wanted = wanted.where(column == chosen[0] if len(chosen) == 1 else column.in_(chosen))
    if prefix := query.name_prefix:
        # Not LIKE: databases disagree on whether it is case-sensitive.
        wanted = wanted.where(func.substr(workflows.c.name, 1, len(prefix), type_=SafeText) == prefix)
    if query.submitted_after is not None:
        wanted = wanted.where(workflows.c.submitted_at >= query.submitted_after)
    if query.submitted_before is not None:
        wanted = wanted.where(workflows.c.submitted_at < query.submitted_before)
    if query.finished is not None:
        wanted = wanted.where(workflows.c.finished == (true() if query.finished else false()))
    for key, value in query.labels.items():
        having = select(labels.c.workflow).where(labels.c.workflow == workflows.c.id, labels.c.key == key)
        wanted = wanted.where((having.where(labels.c.value == value) if value else having).exists())
    return wanted
