"""The leader's in-memory state, and its turns.

Observations are collected, become new states, these are saved all at once, and only then are actions performed.
Everything here can be rebuilt from the store and from the drivers. One thread owns it, so nothing is locked.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from coterie.lifecycle import Action, Tick
from coterie.service.driver.backend_queues import BackendQueues
from coterie.service.driver.catalog_changes import CatalogChanges
from coterie.service.driver.cleanup import Cleanup
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.connections.watch import BackendWatch
from coterie.service.driver.election.held_lease import HeldLease
from coterie.service.driver.executor import note
from coterie.service.driver.handed_over.gangs import HandedOverGangs
from coterie.service.driver.intake import Intake
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.user_requests import UserRequests
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.texts import CachedTexts, Fresh, PromptTexts
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.pools.catalog import LiveCatalog
from coterie.service.settings import Settings
from coterie.store import Store

# How often all outstanding actions are repeated, and stray tasks are looked for.
_AGAIN_S = 60.0
# How long a turn may perform actions, at least and at most; what is left follows in the next turn.
_PERFORM_S = (0.15, 0.5)
# Up to this time, it performs them for twice as long as the rest of the turn took.
_SHORT_S = 0.3
# How long it performs those of very large workflows at least while others wait for the next turn.
_BRIEF_S = 0.05
# After a queue cycle, none begins for so many times as long as it took: with very many gangs, a cycle is expensive.
_CYCLE_PAUSE = 2.0


class Board:
    """The driver of all unfinished workflows, turn by turn.

    `poke` is called when there is something for the next one; `asked` is whether that is a request of a user.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        catalogue: LiveCatalog,
        problems: ServiceProblems,
        poke: Callable[[], None],
        asked: Callable[[], bool],
        fresh: Fresh,
    ) -> None:
        self._store, self._settings, self._problems, self._asked = store, settings, problems, asked
        texts = CachedTexts(store, fresh)
        self._prompt = PromptTexts(texts, poke)
        self._cycle_from = 0.0  # when the next queue cycle may begin, by the monotonic clock
        self._backends = BackendQueues(
            catalogue.refresh(store.pools()),
            texts,
            self._prompt,
            settings.patience_s,
            settings.node_grace_s,
            settings.now(),
            settings.processes,
        )
        self._drivers = Drivers(settings, store.identity(), (texts, self._prompt), poke)
        self.table = WorkflowTable(store, settings.now, problems, self._backends, self._drivers, texts, poke)
        self._executor = self.table.executor
        self._handed_over = HandedOverGangs(self._backends, self.table)
        self._watch = BackendWatch(problems, poke)
        for connection in self._drivers:
            self._watch.add(connection)
        self._cleanup = Cleanup(store, self.table, self._drivers, problems)
        self._changes = CatalogChanges(store, catalogue, self._backends, self._drivers, texts, self.table, self._watch)
        self._requests = UserRequests(store, self.table, self._backends, self._drivers, self._cleanup)
        self._intake = Intake(store, self.table, self._backends, self._changes, self._cleanup)
        self._again_at = settings.now() + _AGAIN_S
        try:
            self._changes.connect()
            self._intake.begin()
            self._cleanup.clean_up(first=True)
        except BaseException:
            self.close()
            raise

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to."""
        return self._drivers.running

    @property
    def waiting(self) -> int:
        """The number of waiting gangs."""
        return self._backends.waiting + len(self.table.backlog)

    def turn(self, now: float, lease: HeldLease) -> tuple[bool, float]:
        """Perform all due work; return whether anything was saved, and how long to wait for more.

        Raises `Conflict` where the lease has expired meanwhile, as after a long suspension: the actions of saved states
        are then performed by the next leader.
        """
        began = time.monotonic()
        self._changes.apply(now)
        self._listen(now)
        self._requests.end_by_force(now, lease.fence)
        self._resume()
        self._look()
        self._ticks(now)
        self._place(now)
        news, todo = self._save(now, lease.fence)
        lease.check()
        self._executor.add(todo)
        rest = time.monotonic() - began
        self._executor.perform(_performing_s(rest), max(_BRIEF_S, rest / 2), self._asked)
        self._executor.catch_up(self.table.lives, now)
        return news, self._pause(now)

    def close(self) -> None:
        """Release all resources; tasks keep running."""
        self._prompt.close()
        self._watch.close()
        self._drivers.close()
        self.table.quarantine.close()
        for connection in self._drivers:
            self._problems.solve(connection.problem)

    def _pause(self, now: float) -> float:
        """Return how long to wait for the next turn, if nothing happens."""
        behind = (
            self._intake.behind
            or self.table.backlog
            or self._executor.busy
            or self._cleanup.behind
            or self._requests.behind
        )
        if behind or any(life.dirty for life in self.table):
            return 0.0
        due = [
            now + self._settings.poll_s,
            now + self._cycle_from - time.monotonic() if self._executor.moved else None,
            self.table.deadlines.soonest,
            self._executor.late_at,
            self._backends.failing_at,
        ]
        return max(0.0, min(at for at in due if at is not None) - now)

    def _listen(self, now: float) -> None:
        """Record events, take up workflows, and follow the requests of users."""
        if said := self._executor.events:
            self._store.record(said)
            said.clear()
        self._intake.take_in()
        self._cleanup.forget()
        self._requests.hand_over(now)
        if now >= self._again_at:
            self._again_at = now + _AGAIN_S
            for workflow in self.table.quarantine:
                self.table.load(workflow)
            self._executor.again(self.table)
            self._cleanup.clean_up()

    def _resume(self) -> None:
        """Continue with workflows whose texts have been read."""
        for workflow in self._prompt.ready():
            if (life := self.table.get(workflow)) is not None:
                self._executor.resume(life)

    def _look(self) -> None:
        for connection in self._drivers:
            with self._problems.reported(connection.problem):
                for workflow, told in connection.driver.news():
                    self.table.tell(workflow, told)
                if said := connection.driver.problems:
                    self._problems.say(connection.problem, "; ".join(said))
                elif not self._executor.behind(connection):
                    self._problems.solve(connection.problem)

        for workflow, error in self._drivers.given_up():
            self.table.put_in_quarantine(workflow, error)

    def _ticks(self, now: float) -> None:
        for workflow in self.table.deadlines.due(now):
            # First of all, so that a task which its watcher ended for the same reason does not count as failed.
            self.table.lives[workflow].pending.insert(0, Tick())

    def _place(self, now: float) -> None:
        self._handed_over.look(now)
        began = time.monotonic()
        if began >= self._cycle_from and (self._executor.moved or self._backends.waiting):
            self._executor.moved = False
            for news in self._backends.cycle(now):
                if (life := self.table.get(news.workflow)) is not None:
                    note(life, news)
            ended = time.monotonic()
            self._cycle_from = ended + _CYCLE_PAUSE * (ended - began)

    def _save(self, now: float, fence: int) -> tuple[bool, list[tuple[LiveWorkflow, Action]]]:
        """Save every workflow with new observations, all at once; return the actions that follow."""
        dirty = []
        for life in [life for life in self.table if life.dirty]:
            with self.table.apart(life.id):
                dirty.append((life, *life.next(now)))
        changes = [change for *_, change in dirty if change is not None]
        if changes:
            self._store.save(changes, fence)
        todo: list[tuple[LiveWorkflow, Action]] = []
        for life, state, actions, change in dirty:
            life.saved(state, change)
            todo += ((life, action) for action in actions)
            if state.finished:
                self.table.remove(life)
            else:
                self.table.deadlines.schedule(life)
        return bool(changes), todo


def _performing_s(rest: float) -> float:
    """Return how long a turn performs actions whose rest took so long: longer, so that a large workflow progresses."""
    least, most = _PERFORM_S
    return min(most, max(least, rest, min(2 * rest, _SHORT_S)))
