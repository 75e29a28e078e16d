"""The service without HTTP, as the API and the command line call it.

Methods read the store, write submissions and user requests, and wake the driver; only the driver changes states. They
may be called from any thread, and raise only `CoterieError`s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from coterie.errors import Conflict, CoterieError, Unavailable, UsageError
from coterie.inspection.map import default_depth, map_json, scene_of
from coterie.inspection.node_map import NodeMap, node_map
from coterie.lifecycle import TaskState
from coterie.rendering.scene import MapScene
from coterie.service.clock import SteadyClock
from coterie.service.driver.leader import Leader
from coterie.service.driver.ownership import claim, register, unregister
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.texts import nothing_fresh
from coterie.service.pools import changes as pool_rules
from coterie.service.pools.catalog import LiveCatalog, PoolCatalog
from coterie.service.pools.resources import NodeUse, nodes_of
from coterie.service.pools.usage import PLAINLY, PoolUsage, WhyQuery
from coterie.service.queue.positions import PositionCache, QueuePositions
from coterie.service.settings import Settings, Submission
from coterie.service.submission.admission import CheckedSubmission, checked, new_workflow, refuse_never, with_changes
from coterie.service.submission.compilation import fingerprint
from coterie.service.submission.preview import hold_to, plan_of
from coterie.service.submission.requests import cancels, check_statuses, deletes, retries
from coterie.service.views import workflows as views
from coterie.service.views.logs import Logs
from coterie.service.views.why import placement_of, why_of
from coterie.service.work_limit import WorkLimit
from coterie.store import EVERYTHING, NewEvent, PlacementRecord, Store, Summary, WorkflowQuery, WorkflowRecord

Json = dict[str, Any]

_MOST = 1000
# The size in bytes from which a submission takes long to read.
_LARGE = 50_000
# How many groups a plan of the service may have: the time of a plan grows with their number.
_PLANNED = 500


class Service:
    """Pools and workflows on one store."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._catalogue = LiveCatalog(settings)
        self._catalogue.current()
        self.store = Store.open(settings.store)
        try:
            identity = self.store.identity()
            self._logs = Logs(settings, identity, lambda: self._catalogue.current().backends)
            claim(settings.tasks, identity, self.store.name)
            register(self.store, settings.tasks, settings.holder)
        except CoterieError:
            self.store.close()
            raise
        clock = settings.now
        if isinstance(clock, SteadyClock) and clock.ahead_s and not self._unfinished():
            clock.adjust()
        self._problems = ServiceProblems(settings.now)
        self._fresh = nothing_fresh()
        self._bell = threading.Condition()
        self._rings = 0
        self._driver = Leader(self.store, settings, self._catalogue, self._problems, self._ring, self._fresh)
        self._thread: threading.Thread | None = None
        self._live: tuple[tuple[int, int, int], PoolUsage] | None = None
        self._node_maps: dict[str, tuple[PoolUsage, NodeMap]] = {}
        self._position_cache = PositionCache(self.store)
        self._stopped = False
        self._submissions = WorkLimit("submissions", running=8, waiting=64, each=64)
        self._large = WorkLimit("templates and large submissions", running=2, waiting=24, each=16)
        self._plans = WorkLimit("plans", running=2, waiting=8, each=4)

    def start(self) -> None:
        """Start driving workflows, once this replica leads."""
        self._thread = threading.Thread(target=self._driver.run, name="coterie-driver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop driving, and close the store; tasks keep running, and the next start finds them."""
        if self._stopped:
            return
        self._stopped = True
        self._driver.stop()
        if self._thread is not None:
            self._thread.join()
        self._catalogue.live.close()
        with suppress(CoterieError):
            unregister(self.store, self.settings.holder)
        self.store.close()

    def _unfinished(self) -> bool:
        return bool(self.store.workflows(WorkflowQuery(finished=False), limit=1).items)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Workflows

    def submit(self, submission: Submission, plan: str | None = None, *, force: bool = False) -> Json:
        """Store a workflow, validated in every way that needs no capacity; the view shows whether it is new.

        Where the id of a plan is given, nothing is stored unless the plan would be the same now. One that can never run
        in its pool is stored only with `force`.
        """
        known = self._repeated(submission)
        if known is not None:
            return {**self._whole(known), "created": False}
        with self._limit(submission).place(submission.owner):
            found = checked(submission, self._catalog(), self.settings)
            if plan is not None:
                hold_to(plan, plan_of(_plannable(found), self._now()))
            if submission.what_if is not None:
                found = with_changes(found, self._now(), self.settings)
            if not force:
                refuse_never(found)
            stored, created = self.store.submit(new_workflow(found, self.settings))
        if created:
            self._fresh.append((stored.id, found.built, submission.local_files))
        self._driver.poke()
        self._ring()
        return {**self._whole(stored, () if created else None), "created": created}

    def plan(self, submission: Submission, *, rehearsed: bool = False) -> Json:
        """Return the placement that a workflow would get now, or with changes, or why none; nothing is stored.

        A `rehearsed` workflow is checked as if it were submitted: the files that it names have to exist, too.
        """
        with self._plans.place(submission.owner):
            live = self._now()
            return plan_of(_plannable(checked(submission, live.catalog, self.settings, rehearsed=rehearsed)), live)

    def workflows(self, query: WorkflowQuery = EVERYTHING, after: int | None = None, limit: int = 100) -> Json:
        """Return a page of workflows, newest first; `after` is the `next` of the page before."""
        check_statuses(query.statuses)
        if not 0 < limit <= _MOST:
            raise UsageError(f"a page has 1 to {_MOST} workflows, not {limit}", "Ask for the next page with after.")
        page = self.store.workflows(query, after, limit)
        running = [item.id for item in page.items if item.started_at is not None and item.ended_at is None]
        nodes = self.store.nodes(running) if running else {}
        rows = [
            {**views.row(item), "nodes": nodes.get(item.id, []), "position": position}
            for item, position in zip(page.items, self._positions(page.items), strict=True)
        ]
        return {"items": rows, "next": page.next}

    def workflow(self, ident: str) -> Json:
        """Return a workflow with its groups and tasks."""
        return self._whole(self.store.workflow(ident))

    def owner_of(self, ident: str) -> str:
        """Return the owner of a workflow."""
        return self.store.summary(ident).owner

    def why(self, ident: str, group: str | None = None, question: WhyQuery = PLAINLY) -> Json:
        """Return why groups wait, with evidence and remedies, or their outcomes under hypothetical changes."""
        return why_of(self.store, self._now(), self._standing(exact=True), ident, group, question)

    def placement(self, ident: str) -> Json:
        """Compare the nodes of running tasks with their constraints."""
        return placement_of(self.store, self._now(), ident)

    def spec(self, ident: str) -> Json:
        """Return a workflow as it was submitted."""
        upload = self.store.upload(ident)
        return {
            "source": upload.source.decode("utf-8", "replace"),
            "file": upload.file,
            "sets": list(upload.sets),
            "set_strings": list(upload.set_strings),
            "files": {path: len(data) for path, data in upload.files.items()},
        }

    def log(self, ident: str, task: str, attempt: int | None = None, offset: int = 0, limit: int = 1 << 16) -> bytes:
        """Return a part of a task's log; empty where there is no more yet."""
        return self._logs.read(self.store.workflow(ident), task, attempt, offset, limit)

    def log_start(self, ident: str, task: str, attempt: int | None, tail: int | None, since: float | None) -> int:
        """Return the offset of the last `tail` lines of a log, and of those that were written since a time."""
        return self._logs.start(self.store.workflow(ident), task, attempt, tail, since)

    def log_end(self, ident: str, task: str, attempt: int | None, limit: int) -> bytes:
        """Return the last lines of a task's log, as many as fit in a number of bytes."""
        return self._logs.end(self.store.workflow(ident), task, attempt, limit)

    def log_ends(
        self, ident: str, most: int, each: int, chosen: Callable[[TaskState], bool]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the ends of chosen started tasks' logs, with their names; all of it within `most` bytes."""
        return self._logs.ends(self.store.workflow(ident), most, each, chosen)

    def log_ended(self, ident: str, task: str, attempt: int | None = None) -> bool:
        """Return whether a task will write nothing more."""
        return self._logs.ended(self.store.workflow(ident), task, attempt)

    def cancel(self, ident: str, message: str = "", *, force: bool = False, by: str = "") -> Json:
        """Request the end of a workflow; a repeated cancellation is no fault."""
        wish = {"kind": "cancel", "message": message[:1000], "force": force, "by": by}
        wanted = partial(cancels, force=force)
        if self.store.wish_if(ident, wish, self.settings.now(), wanted):
            self._driver.poke()
        return self.workflow(ident)

    def retry(self, ident: str, task: str | None = None, *, by: str = "") -> Json:
        """Request the retry of an ended workflow."""
        pool_rules.still_runs(self._catalog(), ident, self.store.summary(ident).pool)
        wish = {"kind": "retry", "task": task, "by": by}
        self.store.wish_if(ident, wish, self.settings.now(), partial(retries, task=task))
        self._driver.poke()
        return self.workflow(ident)

    def delete(self, ident: str, *, force: bool = False, by: str = "") -> bool:
        """Delete an ended workflow, with its logs; return whether it is gone.

        With `force`, one in any other state is canceled without a grace period, and deleted once nothing of it is left.
        """
        now = self.settings.now()
        gone = True
        try:
            self.store.delete(ident, now, by)
        except Conflict:
            if not force:
                raise
            gone = False
            self.store.wish_if(ident, {"kind": "delete", "by": by}, now, deletes)
        self._driver.poke()
        self._ring()
        return gone

    # Events

    def events(self, after: int = 0, workflow: str | None = None, limit: int = _MOST) -> list[Json]:
        """Return the events after a number, in order."""
        if workflow is not None:
            self.store.summary(workflow)
        return [views.event(each) for each in self.store.events(after, workflow, min(max(limit, 1), _MOST))]

    def last_event(self) -> int:
        """Return the number of the newest event."""
        return self.store.last_event()

    def changed(self, after: int, timeout_s: float) -> bool:
        """Wait until there is an event after this one; return whether there is."""
        until = time.monotonic() + timeout_s
        while True:
            rings = self._rings
            if self.store.last_event() > after:
                return True
            left = until - time.monotonic()
            if left <= 0 or self._stopped:
                return False
            with self._bell:
                # Events of other replicas do not wake this one.
                if self._rings == rings:
                    self._bell.wait(min(left, self.settings.poll_s))

    def wait(self, ident: str, until: Callable[[Json], bool] | None = None, timeout_s: float | None = None) -> Json:
        """Wait until a view of a workflow satisfies a condition, by default its end; return the last view."""
        wanted = until or (lambda view: bool(view["finished"]))
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            seen = self.store.last_event()
            view = self.workflow(ident)
            left = 3600.0 if end is None else end - time.monotonic()
            if wanted(view) or left <= 0 or self._stopped:
                return view
            self.changed(seen, min(left, 3600.0))

    # Pools

    def runs_tasks_here(self) -> bool:
        """Return whether a pool runs its tasks on this machine."""
        return any(known.pool.traits.embedded for known in self._catalog().pools.values())

    def pools(self) -> list[Json]:
        """Return all pools."""
        live, tally = self._now(), self.store.tally()
        return [pool_rules.pool_view(known, live, tally) for known in live.catalog.pools.values()]

    def pool(self, name: str) -> Json:
        """Return a pool."""
        live = self._now()
        return pool_rules.pool_view(pool_rules.find(live.catalog, name), live, self.store.tally())

    def apply_pool(
        self,
        name: str,
        document: bytes | Mapping[str, Any],
        *,
        file: str = "pool.yaml",
        dry_run: bool = False,
        version: int | None = None,
        by: str = "",
    ) -> Json:
        """Create or change a pool; return the effects on workflows. An identical pool changes nothing."""
        live = self._now()
        wanted = pool_rules.want(name, document, file, live.catalog)
        hit = list(pool_rules.affected(wanted, self.store))
        before = wanted.before
        changed = before is None or dict(before.document) != dict(wanted.known.document)
        view = pool_rules.pool_view(wanted.known, live, self.store.tally())
        if changed and not dry_run:
            now = self.settings.now()
            _, changed = self.store.put_pool(name, wanted.known.document, now, version)
            if changed:
                said = f'pool "{name}" was {"changed" if before else "created"}{f" by {by}" if by else ""}'
                lost = f"; it lost {', '.join(wanted.lost_levels)}" if wanted.lost_levels else ""
                self.store.record([NewEvent(now, "PoolApplied", said + lost, pool=name)])
                self._ring()
            self._driver.poke()
            view = self.pool(name)
        return {
            "pool": view,
            "changed": changed,
            "created": before is None,
            "dry_run": dry_run,
            "lost_levels": wanted.lost_levels,
            "affected": hit,
            "changes": pool_rules.changes(before.document if before else {}, wanted.known.document),
        }

    def delete_pool(self, name: str, *, by: str = "") -> None:
        """Delete a pool that no workflow uses."""
        catalog = self._catalog()
        pool_rules.refuse_managed(pool_rules.find(catalog, name), catalog)
        self.store.delete_pool(name)
        said = f'pool "{name}" was deleted{f" by {by}" if by else ""}'
        self.store.record([NewEvent(self.settings.now(), "PoolDeleted", said, pool=name)])
        self._ring()
        self._driver.poke()

    def topologies(self) -> list[Json]:
        """Return the levels of all pools that run workflows here, and of all others that have some."""
        live = self._now()
        return [
            pool_rules.topology_view(known, live)
            for known in live.catalog.pools.values()
            if known.pool.backend in live.catalog.clusters or known.pool.topology.levels
        ]

    def topology(self, pool: str) -> Json:
        """Return the levels of a pool, with their domains."""
        live = self._now()
        return pool_rules.topology_view(pool_rules.find(live.catalog, pool), live)

    def scene(self, pool: str) -> MapScene:
        """Return the scene of a pool's nodes and their holders."""
        live = self._now()
        known = pool_rules.find(live.catalog, pool).pool
        domains = pool_rules.domains_of(known, live)
        return scene_of(domains, default_depth(domains), pool=pool)

    def map(self, pool: str) -> Json:
        """Return the map of a pool as data."""
        known = pool_rules.find(self._catalog(), pool).pool
        return map_json(self.scene(pool), known.topology, guessed=False)

    def node_map(self, pool: str) -> NodeMap:
        """Return the nodes of a pool with the tasks on them; the same object as long as nothing can have changed."""
        live = self._now()
        known = self._node_maps.get(pool)
        if known is None or known[0] is not live:
            domains = pool_rules.domains_of(pool_rules.find(live.catalog, pool).pool, live)
            known = self._node_maps[pool] = (live, node_map(domains, default_depth(domains), pool=pool))
        return known[1]

    # The service itself

    def health(self) -> Json:
        """Return whether the service can do its work, and its problems."""
        try:
            leader = self.store.leader()
            store, holder = "ok", leader.holder if leader and leader.expires_at > self.settings.now() else ""
        except CoterieError as error:
            store, holder = str(error), ""
        running, waiting = self._driver.load
        return {
            "ready": store == "ok" and bool(holder) and not self._driver.failing,
            "leader": self._driver.leading,
            "holder": holder,
            "store": store,
            "problems": [
                {"since": views.when(each.since), "what": each.what, "message": each.message}
                for each in self._problems.all()
            ],
            "running": running,
            "waiting": waiting,
        }

    def gauges(self) -> Mapping[str, Mapping[Any, int]]:
        """Return metrics: workflows by pool and status, GPUs by pool and by backend."""
        return pool_rules.gauges(self._now(), self.store.tally())

    def nodes(self) -> list[NodeUse]:
        """Return every node with its capacity, its holders, and its pools."""
        return list(nodes_of(self._now()))

    def _standing(self, *, exact: bool) -> QueuePositions:
        return self._position_cache.now(self._catalog(), lambda: self._now().gpus, exact=exact)

    def _positions(self, items: Sequence[Summary]) -> list[int | None]:
        """Return the positions of workflows in the queue; where none is queued, the queue is not read."""
        found = self._standing(exact=False) if any(item.digest.get("queued") for item in items) else QueuePositions()
        return [found.of(item) for item in items]

    def _position(self, item: Summary) -> int | None:
        """Return the position of a workflow, or None where it cannot be determined: an answer never fails for this."""
        try:
            return self._positions([item])[0]
        except Unavailable:
            return None

    def _repeated(self, submission: Submission) -> WorkflowRecord | None:
        """Return the result of an earlier equal request, even if it would be refused by now."""
        if submission.client_key is None:
            return None
        said = submission.pool
        return self.store.repeated(
            submission.owner, submission.client_key, lambda pool: fingerprint(submission, said or pool)
        )

    def _whole(self, stored: WorkflowRecord, seats: Iterable[PlacementRecord] | None = None) -> Json:
        known = self.store.placements(stored.id) if seats is None else seats
        return {**views.whole(stored, known, self._logs.output(stored).folder), "position": self._position(stored)}

    def _limit(self, submission: Submission) -> WorkLimit:
        """Return the limit that a submission counts to: those that take long must not delay the others."""
        takes_long = len(submission.source) > _LARGE or any(mark in submission.source for mark in (b"{{", b"{%", b"{#"))
        return self._large if takes_long else self._submissions

    def _ring(self) -> None:
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def _catalog(self) -> PoolCatalog:
        return self._catalogue.refresh(self.store.pools())

    def _now(self) -> PoolUsage:
        catalog = self._catalog()
        # Capacity is also returned without an event, so a cached reading expires soon.
        mark = (self.store.last_event(), catalog.number, int(time.monotonic() * 4))
        known = self._live
        if known is None or known[0] != mark:
            known = self._live = (mark, PoolUsage.read(self.store, catalog))
        return known[1]


def _plannable(found: CheckedSubmission) -> CheckedSubmission:
    """Return a submission that is small enough to be planned here; raise `UsageError` for any other."""
    groups = len(found.built.lowered.gangs)
    if groups > _PLANNED:
        raise UsageError(
            f"a service plans workflows of up to {_PLANNED} groups, and this one has {groups:,}",
            "Submit it without a plan, or plan it on your own machine with coterie plan.",
        )
    return found
