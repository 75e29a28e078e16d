"""The requests of users about driven workflows: cancellations, retries, and deletions of unfinished ones."""

from __future__ import annotations

from coterie.errors import NotFound
from coterie.lifecycle import Observation, RetryAsked
from coterie.service.driver.backend_queues import BackendQueues
from coterie.service.driver.cleanup import Cleanup
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.driven_workflow import LiveWorkflow
from coterie.service.driver.forced_end import DELETION, end_of, forced_end
from coterie.service.driver.workflow_table import WorkflowTable
from coterie.store import RequestRecord, Store


class UserRequests:
    """The stored requests of users, handed to life cycles; what a life cycle cannot end is ended by force."""

    def __init__(
        self, store: Store, table: WorkflowTable, backends: BackendQueues, drivers: Drivers, cleanup: Cleanup
    ) -> None:
        self._store, self._table, self._backends = store, table, backends
        self._drivers, self._cleanup = drivers, cleanup
        self._answered: set[int] = set()  # requests to end a workflow that its life cycle was given
        self._forced: list[RequestRecord] = []  # requests to end a workflow that its life cycle cannot end

    def hand_over(self, now: float) -> None:
        """Give all stored requests to the life cycles of their workflows; drop those about deleted ones."""
        table, stale = self._table, []
        for wish in self._store.wishes():
            if wish.workflow in table.quarantine:
                self._end_quarantined(wish)
                continue
            life = table.get(wish.workflow) or table.load(wish.workflow)
            if life is None:
                stale.append(wish.seq)
            elif wish.observation.get("kind") == DELETION:
                self._end_and_delete(life, wish, now)
            elif wish.seq not in life.wishes:
                life.wishes.append(wish.seq)
                life.pending += _observations(wish)
        if stale:
            self._store.drop_wishes(stale)

    def end_by_force(self, now: float, fence: int) -> None:
        """Stop the tasks of workflows that their life cycle cannot end, return what they hold, and save their end."""
        forced, self._forced = self._forced, []
        for wish in forced:
            if (asked := end_of(wish)) is None:
                continue
            try:
                stored = self._store.workflow(wish.workflow)
            except NotFound:
                continue
            held = self._store.held().get(stored.id, ())
            self._table.release(stored.id)
            self._table.quarantine.leave(stored.id)
            left = self._cleanup.stop_strays(stored)
            if not stored.finished:
                self._store.save([forced_end(stored, held, wish, asked, now, left)], fence)
            self._backends.free(stored.id)
            self._table.executor.moved = True
            if wish.observation.get("kind") == DELETION:
                self._store.delete(stored.id, now, asked.by, force=True)
                self._cleanup.delete(stored.id)
            elif stored.finished:
                self._store.drop_wishes([wish.seq])

    def _end_and_delete(self, life: LiveWorkflow, wish: RequestRecord, now: float) -> None:
        """Cancel a workflow that is to be deleted, and delete it once nothing of it is left."""
        if life.state.finished and not life.dirty:
            self._table.remove(life)
            self._store.delete(life.id, now, str(wish.observation.get("by", "")), force=True)
            self._cleanup.delete(life.id)
        elif not self._drivers.has(life):
            self._forced.append(wish)
        elif wish.seq not in self._answered and (asked := end_of(wish)) is not None:
            self._answered.add(wish.seq)
            life.pending.append(asked)

    def _end_quarantined(self, wish: RequestRecord) -> None:
        """End a workflow in quarantine: by its life cycle if that works for an end, and else by force."""
        asked = end_of(wish)
        if asked is None:
            return
        if wish.seq in self._answered:
            self._forced.append(wish)
            return
        quarantine = self._table.quarantine
        try:
            stored = self._store.workflow(wish.workflow)
        except NotFound:
            quarantine.leave(wish.workflow)
            return
        self._answered.add(wish.seq)
        with self._table.apart(wish.workflow):
            life = LiveWorkflow.of(stored)
            quarantine.take(wish.workflow)
            self._table.add(life)
            life.pending.append(asked)
            if wish.observation.get("kind") != DELETION:
                life.wishes.append(wish.seq)
        quarantine.welcome(wish.workflow)


def _observations(wish: RequestRecord) -> list[Observation]:
    said = wish.observation
    match said.get("kind"):
        case "cancel":
            return [asked] if (asked := end_of(wish)) else []
        case "retry":
            return [RetryAsked(said.get("task"), str(said.get("by", "")))]
    return []
