"""The requests of users about driven workflows: cancellations, retries, and deletions of unfinished ones."""

from __future__ import annotations

import time

from coterie.errors import NotFound
from coterie.lifecycle import Observation, RetryAsked
from coterie.service.driver.backend_queues import BackendQueues
from coterie.service.driver.cleanup import Cleanup
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.forced_end import DELETION, end_of, forced_end
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.store import RequestRecord, Store

# How long a turn may load workflows for requests, and how long it may end some by force; the rest follows.
_LOAD_S = _FORCE_S = 0.1


class UserRequests:
    """The stored requests of users, handed to life cycles; what a life cycle cannot end is ended by force.

    `behind` is set while there are more of them than one turn handles.
    """

    def __init__(
        self, store: Store, table: WorkflowTable, backends: BackendQueues, drivers: Drivers, cleanup: Cleanup
    ) -> None:
        self._store, self._table, self._backends = store, table, backends
        self._drivers, self._cleanup = drivers, cleanup
        self._answered: set[int] = set()  # requests to end a workflow that its life cycle was given
        self._forced: list[RequestRecord] = []  # requests to end a workflow that its life cycle cannot end
        self.behind = False

    def hand_over(self, now: float) -> None:
        """Give all stored requests to the life cycles of their workflows; drop those about deleted ones."""
        table, stale = self._table, []
        until, loaded, self.behind = time.monotonic() + _LOAD_S, 0, False
        for request in self._store.pending_requests():
            if request.workflow in table.quarantine:
                self._end_quarantined(request)
                continue
            life = table.get(request.workflow)
            if life is None and loaded and time.monotonic() >= until:
                self.behind = True
                continue
            if life is None:
                loaded += 1
                life = table.load(request.workflow)
            if life is None and request.workflow in table.quarantine:
                self._end_quarantined(request)
            elif life is None:
                stale.append(request.seq)
            elif request.observation.get("kind") == DELETION:
                self._end_and_delete(life, request, now)
            elif request.seq not in life.requests:
                life.requests.append(request.seq)
                life.pending += _observations(request)
        if stale:
            self._store.drop_requests(stale)

    def end_by_force(self, now: float, fence: int) -> None:
        """Stop the tasks of workflows that their life cycle cannot end, return what they hold, and save their end."""
        forced, self._forced = self._forced, []
        until = time.monotonic() + _FORCE_S
        for number, request in enumerate(forced):
            if number and time.monotonic() >= until:
                self.behind = True
                return  # they are still stored, and come again
            if (asked := end_of(request)) is None:
                continue
            try:
                stored = self._store.workflow(request.workflow)
            except NotFound:
                continue
            held = self._store.held().get(stored.id, ())
            self._table.release(stored.id)
            self._table.quarantine.leave(stored.id)
            left = self._cleanup.stop_strays(stored)
            if not stored.finished:
                self._store.save([forced_end(stored, held, request, asked, now, left)], fence)
            self._backends.free(stored.id)
            self._table.executor.moved = True
            if request.observation.get("kind") == DELETION:
                self._store.delete(stored.id, now, asked.by, force=True)
                self._cleanup.delete(stored.id)
            elif stored.finished:
                self._store.drop_requests([request.seq])

    def _end_and_delete(self, life: LiveWorkflow, request: RequestRecord, now: float) -> None:
        """Cancel a workflow that is to be deleted, and delete it once nothing of it is left."""
        if life.state.finished and not life.dirty:
            self._table.remove(life)
            self._store.delete(life.id, now, str(request.observation.get("by", "")), force=True)
            self._cleanup.delete(life.id)
        elif not self._drivers.has(life):
            self._forced.append(request)
        elif request.seq not in self._answered and (asked := end_of(request)) is not None:
            self._answered.add(request.seq)
            life.pending.append(asked)

    def _end_quarantined(self, request: RequestRecord) -> None:
        """End a workflow in quarantine: by its life cycle if that works for an end, and else by force."""
        asked = end_of(request)
        if asked is None:
            return
        if request.seq in self._answered:
            self._forced.append(request)
            return
        quarantine = self._table.quarantine
        try:
            stored = self._store.workflow(request.workflow)
        except NotFound:
            quarantine.leave(request.workflow)
            return
        self._answered.add(request.seq)
        with self._table.apart(request.workflow):
            life = LiveWorkflow.of(stored)
            quarantine.take(request.workflow)
            self._table.add(life)
            life.pending.append(asked)
            if request.observation.get("kind") != DELETION:
                life.requests.append(request.seq)
        quarantine.mark_driven(request.workflow)


def _observations(request: RequestRecord) -> list[Observation]:
    said = request.observation
    match said.get("kind"):
        case "cancel":
            return [asked] if (asked := end_of(request)) else []
        case "retry":
            return [RetryAsked(said.get("task"), str(said.get("by", "")))]
    return []
