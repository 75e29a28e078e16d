"""The store: the service's entire persistent state, in one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Self

from sqlalchemy import select

from coterie.errors import CoterieError
from coterie.store import events, leader_save, leases, pools, requests, samples, schema, tokens, workflows
from coterie.store.databases.database import Database, database
from coterie.store.group_commit import GroupCommit
from coterie.store.records import (
    EVERYTHING,
    LEADER,
    EventRecord,
    Json,
    Lease,
    NewEvent,
    NewWorkflow,
    PlacementRecord,
    PoolRecord,
    PoolSample,
    QueuedWorkflow,
    RequestRecord,
    Summary,
    Token,
    Upload,
    WorkflowChange,
    WorkflowPage,
    WorkflowQuery,
    WorkflowRecord,
)
from coterie.store.tables import identity

PATIENCE_S = 5.0


class Store:
    """A database with Coterie's tables, for any number of threads and replicas.

    Every method is one transaction, which concurrent submissions share: its writes are durable when it returns, and
    rolled back when it raises. A database that is locked, full or unreachable raises `Unavailable` within a few
    seconds, and the next call tries again. Where a connection breaks during the commit itself, its outcome is unknown:
    versions, keys and fences make a repetition safe.
    """

    def __init__(self, made: Database) -> None:
        self._database = made
        self._submit = GroupCommit(self._submit_together)

    @classmethod
    def open(cls, url: str, patience_s: float = PATIENCE_S) -> Self:
        """Open a database by URL, or a SQLite file by path; missing files and tables are created."""
        made = database(url, patience_s)
        try:
            made.check()
            schema.prepare(made)
        except CoterieError:
            made.close()
            raise
        return cls(made)

    @property
    def name(self) -> str:
        """The name of the database in messages: a path, or a URL without its password."""
        return self._database.name

    def identity(self) -> str:
        """Return the unique identity of this store."""
        with self._database.reading() as tx:
            return str(tx.execute(select(identity.c.store)).scalar_one())

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, new: NewWorkflow) -> tuple[WorkflowRecord, bool]:
        """Store a workflow under a new id, or return the one already stored under its owner's key, with False."""
        return self._submit(new)

    def _submit_together(self, several: Sequence[NewWorkflow]) -> Sequence[tuple[WorkflowRecord, bool] | CoterieError]:
        with self._database.writing() as tx:
            return workflows.submit(tx, several)

    def repeated(self, owner: str, key: str, fingerprint: Callable[[str], str]) -> WorkflowRecord | None:
        """Return the earlier submission of an owner under a key; `fingerprint` is the new submission's, for a pool."""
        with self._database.reading() as tx:
            return workflows.repeated(tx, owner, key, fingerprint)

    def workflow(self, ident: str) -> WorkflowRecord:
        """Return a workflow with its spec and its state."""
        with self._database.reading() as tx:
            return workflows.whole(tx, ident)

    def summary(self, ident: str) -> Summary:
        """Return the fields of a workflow that lists show."""
        with self._database.reading() as tx:
            return workflows.summary(tx, ident)

    def upload(self, ident: str) -> Upload:
        """Return the user's submission."""
        with self._database.reading() as tx:
            return workflows.upload(tx, ident)

    def workflows(self, query: WorkflowQuery = EVERYTHING, after: int | None = None, limit: int = 100) -> WorkflowPage:
        """Return a page of workflows, newest first; `after` is the `next` of the page before."""
        with self._database.reading() as tx:
            return workflows.page(tx, query, after, limit)

    def missing(self, idents: Collection[str]) -> set[str]:
        """Return the ids among these that no workflow has."""
        with self._database.reading() as tx:
            return workflows.missing(tx, idents)

    def unfinished(self) -> tuple[WorkflowRecord, ...]:
        """Return all workflows whose state may still change, oldest first."""
        with self._database.reading() as tx:
            return workflows.unfinished(tx)

    def versions(self, idents: Collection[str]) -> Mapping[str, int]:
        """Return the versions of workflows, by id; those that do not exist are left out."""
        with self._database.reading() as tx:
            return workflows.versions(tx, idents)

    def queued(self) -> tuple[QueuedWorkflow, ...]:
        """Return the unfinished workflows, as their places in the queue need them."""
        with self._database.reading() as tx:
            return workflows.queued(tx)

    def tally(self) -> Mapping[tuple[str, str], int]:
        """Return the number of workflows by pool and status."""
        with self._database.reading() as tx:
            return workflows.tally(tx)

    def delete(self, ident: str, at: float, by: str = "", *, force: bool = False) -> None:
        """Delete an ended workflow with all its rows, and record one event of it.

        Raises `Conflict` for one that is about to run again, unless with `force`.
        """
        with self._database.writing() as tx:
            if not force:
                requests.refuse_retried(tx, ident)
            workflows.delete(tx, ident, at, by)

    def save(self, changes: Sequence[WorkflowChange], fence: int) -> int:
        """Write the next states of workflows, all or none, and return the number of the newest event."""
        try:
            with self._database.writing() as tx:
                return leader_save.save(tx, changes, fence)
        except leader_save.StaleError:
            with self._database.reading() as tx:
                raise leader_save.stale(tx, changes) from None

    def placements(self, workflow: str) -> tuple[PlacementRecord, ...]:
        """Return the past and present placements of a workflow's tasks."""
        with self._database.reading() as tx:
            return leader_save.placed(tx, workflow)

    def held(self) -> Mapping[str, tuple[PlacementRecord, ...]]:
        """Return all capacity that is held, by workflow."""
        with self._database.reading() as tx:
            return leader_save.held(tx)

    def nodes(self, idents: Sequence[str]) -> Mapping[str, list[str]]:
        """Return the nodes that some workflows hold capacity on, sorted, by workflow."""
        with self._database.reading() as tx:
            return leader_save.nodes(tx, idents)

    def events(self, after: int = 0, workflow: str | None = None, limit: int = 1000) -> tuple[EventRecord, ...]:
        """Return events after a number, in order; reading on from the last one misses none."""
        with self._database.reading() as tx:
            return events.after(tx, after, workflow, limit)

    def latest_events(self, workflow: str, kind: str, limit: int = 1000) -> tuple[EventRecord, ...]:
        """Return the latest events of one kind of a workflow, the newest first."""
        with self._database.reading() as tx:
            return events.latest(tx, workflow, kind, limit)

    def announcements(self, after: int, kinds: Sequence[str], limit: int) -> tuple[tuple[tuple[str, str], ...], int]:
        """Return the kind and the workflow of events of some kinds, and the number to continue after."""
        with self._database.reading() as tx:
            return events.of_kinds(tx, after, kinds, limit)

    def last_event(self) -> int:
        """Return the number of the newest event, 0 before the first."""
        with self._database.reading() as tx:
            return events.last(tx)

    def record(self, new: Sequence[NewEvent]) -> int:
        """Store events without a state change of a workflow, and return the number of the newest."""
        with self._database.writing() as tx:
            events.append(tx, events.rows(new))
            return events.last(tx)

    def request(self, workflow: str, observation: Mapping[str, Json], at: float) -> int:
        """Store a user's request for the leader."""
        with self._database.writing() as tx:
            return requests.add(tx, workflow, observation, at)

    def request_if(
        self,
        workflow: str,
        observation: Mapping[str, Json],
        at: float,
        wanted: Callable[[WorkflowRecord, tuple[RequestRecord, ...]], bool],
    ) -> bool:
        """Store a user's request if `wanted` accepts it; return whether it did.

        `wanted` sees the workflow and its pending requests, and both stay unchanged until the request is stored. Its
        exceptions propagate.
        """
        with self._database.writing() as tx:
            if not wanted(workflows.whole(tx, workflow), requests.of(tx, workflow)):
                return False
            requests.add(tx, workflow, observation, at)
            return True

    def pending_requests(self, after: int = 0, limit: int = 1000) -> tuple[RequestRecord, ...]:
        """Return pending user requests, oldest first."""
        with self._database.reading() as tx:
            return requests.after(tx, after, limit)

    def drop_requests(self, seqs: Sequence[int]) -> None:
        """Delete user requests that change nothing; the others are named in a `WorkflowChange`."""
        with self._database.writing() as tx:
            requests.drop(tx, seqs)

    def pools(self) -> tuple[PoolRecord, ...]:
        """Return all stored pools, by name."""
        with self._database.reading() as tx:
            return pools.every(tx)

    def pool(self, name: str) -> PoolRecord:
        """Return a stored pool."""
        with self._database.reading() as tx:
            return pools.one(tx, name)

    def put_pool(
        self, name: str, spec: Mapping[str, Json], at: float, version: int | None = None
    ) -> tuple[PoolRecord, bool]:
        """Create or change a pool; return whether anything changed.

        With a version, the stored pool must have that version; 0 means that it must not exist.
        """
        with self._database.writing() as tx:
            return pools.put(tx, name, spec, at, version)

    def delete_pool(self, name: str, version: int | None = None) -> None:
        """Delete a pool without unfinished workflows."""
        with self._database.writing() as tx:
            pools.remove(tx, name, version)

    def add_samples(self, new: Sequence[PoolSample], oldest: float) -> None:
        """Store samples, in place of those of the same pools and times; delete those from before `oldest`."""
        with self._database.writing() as tx:
            samples.add(tx, new, oldest)

    def samples(self, pool: str, since: float) -> tuple[PoolSample, ...]:
        """Return the samples of a pool since a time, oldest first."""
        with self._database.reading() as tx:
            return samples.of(tx, pool, since)

    def add_token(self, token: Token) -> None:
        """Store a token."""
        with self._database.writing() as tx:
            tokens.add(tx, token)

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, the oldest first."""
        with self._database.reading() as tx:
            return tokens.every(tx)

    def token_by_hash(self, value: str) -> Token | None:
        """Return the token whose secret has this hash."""
        with self._database.reading() as tx:
            return tokens.by_hash(tx, value)

    def delete_token(self, ident: str) -> None:
        """Delete a token."""
        with self._database.writing() as tx:
            tokens.remove(tx, ident)

    def acquire(self, holder: str, now: float, ttl_s: float, name: str = LEADER) -> Lease | None:
        """Acquire the lease if no other holder has it, with a higher fence than all before."""
        with self._database.writing() as tx:
            return leases.acquire(tx, name, holder, now, ttl_s)

    def renew(self, lease: Lease, now: float, ttl_s: float) -> Lease:
        """Extend the lease, unless another holder acquired it."""
        with self._database.writing() as tx:
            return leases.renew(tx, lease, now, ttl_s)

    def release(self, lease: Lease) -> None:
        """Release the lease, so that another holder need not wait for its expiry."""
        with self._database.writing() as tx:
            leases.release(tx, lease)

    def annotate(self, name: str, change: Callable[[str], str]) -> None:
        """Replace the text under a name by a changed one, with no other change in between."""
        with self._database.writing() as tx:
            known = leases.current(tx, name)
            leases.acquire(tx, name, change(known.holder if known else ""), 0.0, 0.0)

    def leader(self, name: str = LEADER) -> Lease | None:
        """Return the current or last holder's lease."""
        with self._database.reading() as tx:
            return leases.current(tx, name)
