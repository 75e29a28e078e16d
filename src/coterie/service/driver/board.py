"""The leader's in-memory state: driven workflows, their backends, and their outstanding actions.

Observations are collected, become new states, these are saved all at once, and only then are actions performed.
Everything here can be rebuilt from the store and from the drivers. One thread owns it, so nothing is locked.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from coterie.errors import NotFound, Unavailable
from coterie.lifecycle import (
    Action,
    LossCause,
    Lost,
    Observation,
    Recovered,
    RetryAsked,
    Running,
    Scheduled,
    Tick,
    Up,
    deadline,
)
from coterie.service.driver.backend_queues import BackendQueues, FailedTask
from coterie.service.driver.driven_workflow import LiveWorkflow, home_of
from coterie.service.driver.drivers import Connection, Drivers
from coterie.service.driver.executor import ActionExecutor, note
from coterie.service.driver.forced_end import DELETION, end_of, forced_end
from coterie.service.driver.held_lease import HeldLease
from coterie.service.driver.pool_changes import levels_lost, violated
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.quarantine import Quarantine
from coterie.service.driver.texts import CachedTexts, Fresh, PromptTexts
from coterie.service.pools.catalog import LiveCatalog
from coterie.service.queue.order import PRIORITIES
from coterie.service.settings import Settings
from coterie.store import NewEvent, RequestRecord, Store, WorkflowRecord

# How often all outstanding actions are repeated, and stray tasks are looked for.
_AGAIN_S = 60.0
# How long a thread that waits for tasks may delay the closing of the board.
_WAKE_S = 0.2
# How long a turn may take workflows up, before it does the rest of its work and the next turn continues.
_TAKE_UP_S = 0.1
# How long a turn may perform actions, at least and at most; what is left follows in the next turn.
_PERFORM_S = (0.15, 0.5)
# After a queue cycle, none begins for so many times as long as it took: with very many gangs, a cycle is expensive.
_CYCLE_PAUSE = 2.0
# How many announcements are read at a time.
_PAGE = 50
# How long to wait before tasks whose state could not be read are read again.
_PAUSE_S = 1.0


class Board:
    """The driver of all unfinished workflows, turn by turn."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        catalogue: LiveCatalog,
        problems: ServiceProblems,
        poke: Callable[[], None],
        fresh: Fresh,
    ) -> None:
        self._store, self._settings, self._catalogue = store, settings, catalogue
        self._problems, self._poke = problems, poke
        self._lives: dict[str, LiveWorkflow] = {}
        self._quarantine = Quarantine(problems)
        self._deleted: set[str] = set()
        self._answered: set[int] = set()  # requests to end a workflow that its life cycle was given
        self._forced: list[RequestRecord] = []  # requests to end a workflow that its life cycle cannot end
        self._clock: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._events: list[NewEvent] = []
        self._seen = store.last_event()
        self._texts = CachedTexts(store, fresh)
        self._prompt = PromptTexts(self._texts, poke)
        self._backlog: deque[str] = deque()  # workflows that only wait, and are not taken up yet
        self._cycle_from = 0.0  # when the next queue cycle may begin, by the monotonic clock
        self._unheard = False  # whether there are more announcements than one turn takes up
        self._backends = BackendQueues(
            catalogue.refresh(store.pools()),
            self._texts,
            self._prompt,
            settings.patience_s,
            settings.node_grace_s,
            settings.now(),
            settings.processes,
        )
        self._drivers = Drivers(settings, store.identity(), (self._texts, self._prompt), poke)
        self._executor = ActionExecutor(self._backends, self._drivers, settings.now, problems, poke, self._apart)
        self._closed = threading.Event()
        self._watchers: list[threading.Thread] = []
        for connection in self._drivers:
            self._follow(connection)
        self._again_at = settings.now() + _AGAIN_S
        try:
            self._connect()
            self._take_up()
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
        return self._backends.waiting + len(self._backlog)

    def turn(self, now: float, lease: HeldLease) -> tuple[bool, float]:
        """Perform all due work; return whether anything was saved, and how long to wait for more.

        Raises `Conflict` where the lease has expired meanwhile, as after a long suspension: the actions of saved states
        are then performed by the next leader.
        """
        began = time.monotonic()
        self._refresh(now)
        self._listen(now)
        self._end_by_force(now, lease.fence)
        self._resume()
        self._look()
        self._ticks(now)
        self._place(now)
        news, todo = self._save(now, lease.fence)
        lease.check()
        self._executor.add(todo)
        # At least as long as the rest of the turn took, so that a large workflow makes progress.
        least, most = _PERFORM_S
        self._executor.perform(min(most, max(least, time.monotonic() - began)))
        self._executor.catch_up(self._lives, now)
        behind = self._unheard or self._backlog or self._executor.busy
        if behind or any(life.dirty for life in self._lives.values()):
            return news, 0.0
        due = [now + self._settings.poll_s]
        due += [now + self._cycle_from - time.monotonic()] if self._executor.moved else []
        due += [self._clock[0][0]] if self._clock else []
        due += [at] if (at := self._executor.late_at) is not None else []
        due += [at] if (at := self._backends.failing_at) is not None else []
        return news, max(0.0, min(due) - now)

    def close(self) -> None:
        """Release all resources; tasks keep running."""
        self._closed.set()
        self._prompt.close()
        for watcher in self._watchers:
            watcher.join()
        self._drivers.close()
        self._quarantine.close()
        for connection in self._drivers:
            self._problems.solve(connection.problem)

    def _take_up(self) -> None:
        held = self._store.held()
        failures: list[FailedTask] = []
        resting: list[tuple[int, int, str]] = []
        for stored in self._store.unfinished():
            rows = held.get(stored.id, ())
            if not rows and LiveWorkflow.rests(stored):
                # What runs or is being ended comes first; these follow in the order of the queue, some in each turn.
                resting.append((PRIORITIES.index(stored.priority), stored.number, stored.id))
                continue
            with self._apart(stored.id):
                life = LiveWorkflow.of(stored)
                failures += self._backends.restore(life, rows)
                self._adopt(life)
            if stored.id in self._quarantine:
                self._backends.keep(stored, rows)
        self._backlog.extend(workflow for _, _, workflow in sorted(resting))
        self._executor.again(list(self._lives.values()))
        self._lose(failures)
        self._welcome_back(self._lives.values())
        self._clean_up(first=True)

    def _connect(self) -> None:
        """Open the drivers of new backends, and let them follow the workflows that are theirs."""
        for connection in self._drivers.apply(self._backends.catalog):
            self._follow(connection)
            for life in self._lives.values():
                if home_of(life.digest) == connection.home:
                    connection.driver.adopt(life)

    def _follow(self, connection: Connection) -> None:
        name = f"coterie-watch {connection.home}".strip()
        watcher = threading.Thread(target=self._watch, args=(connection,), name=name, daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _watch(self, connection: Connection) -> None:
        while not self._closed.is_set():
            try:
                if connection.driver.wait(_WAKE_S):
                    self._poke()
            except Unavailable as error:
                self._problems.say(connection.problem, str(error))
                self._closed.wait(_PAUSE_S)

    # Observations

    def _refresh(self, now: float) -> None:
        """Apply changes of pools and nodes; tasks on failed nodes are lost."""
        before, catalog = self._backends.catalog, self._catalogue.refresh(self._store.pools())
        if catalog.number != before.number:
            self._lose(self._backends.apply(catalog, now))
            if catalog.clusters.keys() - before.clusters.keys():
                self._lose(self._held_again())
            self._executor.moved = True
            self._connect()
            self._welcome_back(self._lives.values())
            for life in list(self._lives.values()):
                with self._apart(life.id):
                    self._events += levels_lost(life, before, catalog, now)
                    self._events += violated(life, self._texts, before, catalog, now)
                self._executor.enqueue(life)
        if (at := self._backends.failing_at) is not None and at <= now:
            self._lose(self._backends.failed(self._lives, now))

    def _held_again(self) -> list[FailedTask]:
        """Restore the holdings of tasks on clusters that have just become known."""
        held = self._store.held()
        return [
            failure for life in self._lives.values() for failure in self._backends.restore(life, held.get(life.id, ()))
        ]

    def _lose(self, failures: Iterable[FailedTask]) -> None:
        for each in failures:
            self._tell(each.workflow, Lost(each.task, each.attempt, LossCause.NODE_FAILED, each.why))

    def _welcome_back(self, lives: Iterable[LiveWorkflow]) -> None:
        """Let workflows use failed nodes again that are healthy now."""
        for life in list(lives):
            with self._apart(life.id):
                life.pending += [Recovered(node) for node in self._backends.recovered(life)]

    def _listen(self, now: float) -> None:
        if said := [*self._events, *self._executor.events]:
            self._store.record(said)
            self._events.clear()
            self._executor.events.clear()
        self._take_in()
        self._forget()
        stale = []
        for wish in self._store.wishes():
            if wish.workflow in self._quarantine:
                self._end_quarantined(wish)
                continue
            life = self._lives.get(wish.workflow) or self._load(wish.workflow)
            if life is None:
                stale.append(wish.seq)
            elif wish.observation.get("kind") == DELETION:
                self._end_and_delete(life, wish, now)
            elif wish.seq not in life.wishes:
                life.wishes.append(wish.seq)
                life.pending += _wished(wish)
        if stale:
            self._store.drop_wishes(stale)
        if now >= self._again_at:
            self._again_at = now + _AGAIN_S
            for workflow in self._quarantine:
                self._load(workflow)
            self._executor.again(list(self._lives.values()))
            self._clean_up()

    def _take_in(self) -> None:
        """Take up new workflows, then waiting ones from before a restart, for a limited time."""
        until = time.monotonic() + _TAKE_UP_S
        self._unheard = True
        while self._unheard and time.monotonic() < until:
            said, self._seen = self._store.announcements(self._seen, ("Submitted", "Deleted"), _PAGE)
            self._unheard = len(said) == _PAGE
            for kind, workflow in said:
                if kind == "Deleted":
                    self._deleted.add(workflow)
                elif workflow not in self._lives:
                    self._load(workflow)
        while self._backlog and time.monotonic() < until:
            workflow = self._backlog.popleft()
            if workflow not in self._lives and (life := self._load(workflow)) is not None:
                self._welcome_back([life])

    def _resume(self) -> None:
        """Continue with workflows whose texts have been read."""
        for workflow in self._prompt.ready():
            if (life := self._lives.get(workflow)) is not None:
                self._executor.resume(life)

    def _load(self, workflow: str) -> LiveWorkflow | None:
        with self._apart(workflow):
            try:
                life = LiveWorkflow.of(self._store.workflow(workflow))
            except NotFound:
                self._quarantine.leave(workflow)
                return None
            self._quarantine.take(workflow)
            self._adopt(life)
            self._executor.again([life])
        self._quarantine.welcome(workflow)
        return self._lives.get(workflow)

    def _end_and_delete(self, life: LiveWorkflow, wish: RequestRecord, now: float) -> None:
        """Cancel a workflow that is to be deleted, and delete it once nothing of it is left."""
        if life.state.finished and not life.dirty:
            self._drop(life)
            self._store.delete(life.id, now, str(wish.observation.get("by", "")), force=True)
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
        try:
            stored = self._store.workflow(wish.workflow)
        except NotFound:
            self._quarantine.leave(wish.workflow)
            return
        self._answered.add(wish.seq)
        with self._apart(wish.workflow):
            life = LiveWorkflow.of(stored)
            self._quarantine.take(wish.workflow)
            self._adopt(life)
            life.pending.append(asked)
            if wish.observation.get("kind") != DELETION:
                life.wishes.append(wish.seq)
        self._quarantine.welcome(wish.workflow)

    def _end_by_force(self, now: float, fence: int) -> None:
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
            self._release(stored.id)
            self._quarantine.leave(stored.id)
            left = self._stop_strays(stored)
            if not stored.finished:
                self._store.save([forced_end(stored, held, wish, asked, now, left)], fence)
            self._backends.free(stored.id)
            self._executor.moved = True
            if wish.observation.get("kind") == DELETION:
                self._store.delete(stored.id, now, asked.by, force=True)
            elif stored.finished:
                self._store.drop_wishes([wish.seq])

    def _stop_strays(self, stored: WorkflowRecord) -> str:
        """Kill the tasks of a workflow that no state knows any more; return what may still run."""
        home, left = home_of(stored.digest), ""
        if home not in {connection.home for connection in self._drivers}:
            left = f'its tasks on backend "{home}" were not stopped, since that backend is not known here'
        for connection in self._drivers:
            try:
                connection.driver.end_strays(self._own(connection), {*self._quarantine, *self._backlog})
            except Unavailable as error:
                left = f"its tasks may still run: {error}" if connection.home == home else left
        return left

    def _own(self, connection: Connection) -> dict[str, LiveWorkflow]:
        """Return the workflows of a backend."""
        return {name: life for name, life in self._lives.items() if home_of(life.digest) == connection.home}

    def _adopt(self, life: LiveWorkflow) -> None:
        self._lives[life.id] = life
        self._schedule(life)
        with self._spoken(self._drivers.problem(life)):
            self._drivers.of(life).driver.adopt(life)

    def _look(self) -> None:
        for connection in self._drivers:
            with self._spoken(connection.problem):
                for workflow, told in connection.driver.news():
                    self._tell(workflow, told)
                if not self._executor.behind(connection):
                    self._problems.solve(connection.problem)

    @contextmanager
    def _spoken(self, problem: str) -> Iterator[None]:
        """Handle one backend in isolation: its unavailability is recorded as a problem, and the others continue."""
        try:
            yield
        except Unavailable as error:
            self._problems.say(problem, str(error))

    def _ticks(self, now: float) -> None:
        while self._clock and self._clock[0][0] <= now:
            at, workflow = heapq.heappop(self._clock)
            if self._due.get(workflow) == at:
                del self._due[workflow]
                # First of all, so that a task which its watcher ended for the same reason does not count as failed.
                self._lives[workflow].pending.insert(0, Tick())

    def _schedule(self, life: LiveWorkflow) -> None:
        at = deadline(life.spec, life.state)
        if at is None:
            self._due.pop(life.id, None)
        elif self._due.get(life.id) != at:
            self._due[life.id] = at
            heapq.heappush(self._clock, (at, life.id))

    def _place(self, now: float) -> None:
        began = time.monotonic()
        if began >= self._cycle_from and (self._executor.moved or self._backends.waiting):
            self._executor.moved = False
            for news in self._backends.cycle(now):
                if (life := self._lives.get(news.workflow)) is not None:
                    note(life, news)
            ended = time.monotonic()
            self._cycle_from = ended + _CYCLE_PAUSE * (ended - began)

    def _tell(self, workflow: str, told: Observation) -> None:
        if (life := self._lives.get(workflow)) is None:
            return
        life.pending.append(told)
        if isinstance(told, Scheduled | Up | Running) and (row := self._backends.scheduled(life, told)) is not None:
            life.placed[row.group, row.task, row.attempt] = row

    # Saves

    def _save(self, now: float, fence: int) -> tuple[bool, list[tuple[LiveWorkflow, Action]]]:
        """Save every workflow with new observations, all at once; return the actions that follow."""
        dirty = []
        for life in [life for life in self._lives.values() if life.dirty]:
            with self._apart(life.id):
                dirty.append((life, *life.next(now)))
        changes = [change for *_, change in dirty if change is not None]
        if changes:
            self._store.save(changes, fence)
        todo: list[tuple[LiveWorkflow, Action]] = []
        for life, state, actions, change in dirty:
            life.saved(state, change)
            todo += ((life, action) for action in actions)
            if state.finished:
                self._drop(life)
            else:
                self._schedule(life)
        return bool(changes), todo

    def _drop(self, life: LiveWorkflow) -> None:
        del self._lives[life.id]
        self._due.pop(life.id, None)
        self._executor.drop(life.id)
        self._texts.forget(life.id)
        with self._spoken(self._drivers.problem(life)):
            # The next cleanup archives what cannot be archived now.
            self._drivers.of(life).driver.put_away(life.id)

    @contextmanager
    def _apart(self, workflow: str) -> Iterator[None]:
        """Handle one workflow in isolation: its errors must not keep the others from being driven."""
        try:
            yield
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - nobody knows what it is, so nothing more is done with this one
            self._release(workflow)
            self._quarantine.put(workflow, error)

    def _release(self, workflow: str) -> None:
        """Drive a workflow no more; what it holds, and its tasks, stay."""
        self._lives.pop(workflow, None)
        self._due.pop(workflow, None)
        self._executor.drop(workflow)
        self._texts.forget(workflow)
        self._backends.withdraw(workflow)
        self._drivers.let_go(workflow)

    # Cleanup

    def _clean_up(self, *, first: bool = False) -> None:
        """End stray tasks, archive ended workflows, and remove the remains of deleted ones.

        Workflows that were archived long ago are only considered the `first` time.
        """
        for connection in self._drivers:
            with self._spoken(connection.problem):
                driver = connection.driver
                apart = {*self._quarantine, *self._backlog}
                driver.end_strays(self._own(connection), apart)
                left = driver.left() - {*self._lives, *apart}
                self._deleted |= self._store.missing({*left, *(driver.kept() if first else ())})
                for workflow in left - self._deleted:
                    driver.put_away(workflow)
        self._forget()

    def _forget(self) -> None:
        """Remove the remains of deleted workflows; failures are retried."""
        for workflow in list(self._deleted):
            gone = True
            for connection in self._drivers:
                try:
                    connection.driver.forget(workflow)
                except Unavailable as error:
                    gone = False
                    self._problems.say(connection.problem, str(error))
            if not gone:
                return
            self._deleted.discard(workflow)


def _wished(wish: RequestRecord) -> list[Observation]:
    said = wish.observation
    match said.get("kind"):
        case "cancel":
            return [asked] if (asked := end_of(wish)) else []
        case "retry":
            return [RetryAsked(said.get("task"), str(said.get("by", "")))]
    return []
