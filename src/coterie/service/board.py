"""All that a leader has on its hands: the lives of workflows, where they run, and what is to be done for them.

Observations are gathered, become new states, these are saved all at once, and only then is anything done. Everything
here can be had again from the store and from the supervisor. One thread owns it, so nothing is locked.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Collection, Iterable, Iterator

from coterie.errors import NotFound, Unavailable, UsageError
from coterie.lifecycle import (
    Action,
    CancelAsked,
    Cause,
    Create,
    Delete,
    Enqueue,
    Go,
    Lost,
    Observation,
    Recovered,
    Release,
    RetryAsked,
    Running,
    Stop,
    Tick,
    deadline,
    outstanding,
)
from coterie.service.catalog import Catalog, Catalogue
from coterie.service.life import Fresh, Life, Texts
from coterie.service.runner import Runner
from coterie.service.settings import Settings
from coterie.service.sites import Failure, News, Sites
from coterie.service.store import NewEvent, Store, Wish
from coterie.service.troubles import Troubles

# How often all that is outstanding is done again, and what nobody expects to run is looked for.
_AGAIN_S = 60.0
# How long a thread that waits for tasks may keep the board from closing.
_WAKE_S = 0.2
# How long to wait after something could not be done for the moment.
_PAUSE_S = 1.0


class Board:
    """Takes up everything that is unfinished, and drives it turn by turn."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        catalogue: Catalogue,
        troubles: Troubles,
        poke: Callable[[], None],
        fresh: Fresh,
    ) -> None:
        self._store, self._settings, self._catalogue = store, settings, catalogue
        self._troubles, self._poke = troubles, poke
        self._lives: dict[str, Life] = {}
        self._clock: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._later: set[str] = set()
        self._later_at = 0.0
        self._events: list[NewEvent] = []
        self._cycle = False
        self._seen = store.last_event()
        self._texts = Texts(store, fresh)
        self._sites = Sites(
            catalogue.refresh(store.pools()),
            self._texts,
            settings.patience_s,
            settings.node_grace_s,
            settings.now(),
            settings.processes,
        )
        self._runner = Runner(settings, self._texts)
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="coterie-watch", daemon=True)
        self._watcher.start()
        self._again_at = settings.now() + _AGAIN_S
        try:
            self._take_up()
        except BaseException:
            self.close()
            raise

    @property
    def running(self) -> int:
        """How many tasks run or are about to."""
        return self._runner.running

    @property
    def waiting(self) -> int:
        """How many gangs wait for a place."""
        return self._sites.waiting

    def turn(self, now: float, fence: int) -> tuple[bool, float]:
        """Do all there is to do; tell whether anything was saved, and how long to wait for more."""
        self._refresh(now)
        self._listen(now)
        self._look()
        self._ticks(now)
        self._place(now)
        news, todo = self._save(now, fence)
        self._do(todo)
        self._do_late(now)
        if self._cycle or any(life.dirty for life in self._lives.values()):
            return news, 0.0
        due = [now + self._settings.poll_s]
        due += [self._clock[0][0]] if self._clock else []
        due += [self._later_at] if self._later else []
        due += [at] if (at := self._sites.failing_at) is not None else []
        return news, max(0.0, min(due) - now)

    def close(self) -> None:
        """Let go of everything; tasks go on running."""
        self._closed.set()
        self._watcher.join()
        self._runner.supervisor.close()

    def _take_up(self) -> None:
        held = self._store.held()
        failures: list[Failure] = []
        for stored in self._store.unfinished():
            try:
                life = Life.of(stored)
                failures += self._sites.restore(life, held.get(life.id, ()))
            except UsageError as error:
                self._troubles.say(f"workflow {stored.id}", str(error))
                continue
            self._adopt(life)
        self._again(list(self._lives.values()))
        self._lose(failures)
        self._welcome_back()
        self._clean_up(self._runner.away())

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                if self._runner.supervisor.wait(_WAKE_S):
                    self._poke()
            except Unavailable as error:
                self._troubles.say("tasks", str(error))
                self._closed.wait(_PAUSE_S)

    # Hearing

    def _refresh(self, now: float) -> None:
        """Take in what changed about pools and nodes; tasks on nodes that have failed are lost with them."""
        before, catalog = self._sites.catalog, self._catalogue.refresh(self._store.pools())
        if catalog.number != before.number:
            self._lose(self._sites.apply(catalog, now))
            self._cycle = True
            self._welcome_back()
            for life in self._lives.values():
                self._events += _levels_lost(life, before, catalog, now)
                self._do((life, each) for each in outstanding(life.spec, life.state) if isinstance(each, Enqueue))
        if (at := self._sites.failing_at) is not None and at <= now:
            self._lose(self._sites.failed(self._lives, now))

    def _lose(self, failures: Iterable[Failure]) -> None:
        for each in failures:
            self._tell(each.workflow, Lost(each.task, each.attempt, Cause.NODE_FAILED, each.why))

    def _welcome_back(self) -> None:
        """Let workflows use again what failed under them and is well now."""
        for life in self._lives.values():
            life.pending += [Recovered(node) for node in self._sites.recovered(life)]

    def _listen(self, now: float) -> None:
        if self._events:
            self._store.record(self._events)
            self._events = []
        while events := self._store.events(self._seen):
            for event in events:
                if event.kind == "Submitted" and event.workflow not in self._lives:
                    self._load(event.workflow)
                elif event.kind == "Deleted":
                    self._forget([event.workflow])
                self._seen = event.seq
        stale = []
        for wish in self._store.wishes():
            life = self._lives.get(wish.workflow) or self._load(wish.workflow)
            if life is None:
                stale.append(wish.seq)
            elif wish.seq not in life.wishes:
                life.wishes.append(wish.seq)
                life.pending += _wished(wish)
        if stale:
            self._store.drop_wishes(stale)
        if now >= self._again_at:
            self._again_at = now + _AGAIN_S
            self._again(list(self._lives.values()))
            self._clean_up()

    def _load(self, workflow: str) -> Life | None:
        try:
            life = Life.of(self._store.workflow(workflow))
        except NotFound:
            return None
        except UsageError as error:
            self._troubles.say(f"workflow {workflow}", str(error))
            return None
        self._adopt(life)
        self._again([life])
        return life

    def _adopt(self, life: Life) -> None:
        self._lives[life.id] = life
        self._schedule(life)
        self._runner.watch(life)

    def _look(self) -> None:
        try:
            for workflow, told in self._runner.news():
                self._tell(workflow, told)
            if not self._later:
                self._troubles.solve("tasks")
        except Unavailable as error:
            self._troubles.say("tasks", str(error))

    def _ticks(self, now: float) -> None:
        while self._clock and self._clock[0][0] <= now:
            at, workflow = heapq.heappop(self._clock)
            if self._due.get(workflow) == at:
                del self._due[workflow]
                # First of all, so that a task which its watcher ended for the same reason does not count as failed.
                self._lives[workflow].pending.insert(0, Tick())

    def _schedule(self, life: Life) -> None:
        at = deadline(life.spec, life.state)
        if at is None:
            self._due.pop(life.id, None)
        elif self._due.get(life.id) != at:
            self._due[life.id] = at
            heapq.heappush(self._clock, (at, life.id))

    def _place(self, now: float) -> None:
        if self._cycle or self._sites.waiting:
            self._cycle = False
            for news in self._sites.cycle(now):
                self._note(news)

    def _note(self, news: News) -> None:
        if (life := self._lives.get(news.workflow)) is not None:
            life.pending.append(news.observation)
            life.placed += news.placed

    def _tell(self, workflow: str, told: Observation) -> None:
        if (life := self._lives.get(workflow)) is not None:
            life.pending.append(told)

    # Saving

    def _save(self, now: float, fence: int) -> tuple[bool, list[tuple[Life, Action]]]:
        """Save every workflow of which something was heard, all at once; return what is then to be done too."""
        dirty = [(life, *life.next(now)) for life in self._lives.values() if life.dirty]
        changes = [change for *_, change in dirty if change is not None]
        if changes:
            self._store.save(changes, fence)
        todo: list[tuple[Life, Action]] = []
        for life, state, actions, change in dirty:
            life.saved(state, change)
            todo += ((life, action) for action in actions)
            if state.finished:
                self._drop(life)
            else:
                self._schedule(life)
        return bool(changes), todo

    def _drop(self, life: Life) -> None:
        del self._lives[life.id]
        self._due.pop(life.id, None)
        self._later.discard(life.id)
        self._texts.forget(life.id)
        try:
            self._runner.put_away(life.id)
        except Unavailable as error:
            # It is put away by the next cleaning up.
            self._troubles.say("tasks", str(error))

    # Doing

    def _again(self, lives: Iterable[Life]) -> None:
        """Do again whatever is outstanding: doing something twice is doing it once."""
        for life in lives:
            self._do((life, action) for action in outstanding(life.spec, life.state))

    def _do_late(self, now: float) -> None:
        if not self._later or now < self._later_at:
            return
        late, self._later = self._later, set()
        self._again([self._lives[name] for name in late if name in self._lives])
        if not self._later:
            self._troubles.solve("tasks")

    def _do(self, actions: Iterable[tuple[Life, Action]]) -> None:
        for life, action in actions:
            if life.id in self._later:
                continue  # what comes after something that could not be done waits with it
            try:
                self._do_one(life, action)
            except Unavailable as error:
                self._later.add(life.id)
                self._later_at = self._settings.now() + _PAUSE_S
                if self._troubles.say("tasks", str(error)):
                    said = NewEvent(self._settings.now(), "Trouble", str(error), workflow=life.id, pool=life.pool)
                    self._events.append(said)

    def _do_one(self, life: Life, action: Action) -> None:
        sites = self._sites
        match action:
            case Enqueue():
                self._cycle = True
                if (news := sites.enqueue(life, action)) is not None:
                    self._note(news)
            case Release():
                self._cycle = True
                life.pending.append(sites.release(life, action))
            case Create():
                held = sites.held((life.id, action.group, action.attempt))
                life.pending += self._runner.create(life, action, held, lambda node: sites.domains(life.pool, node))
            case Go():
                # All tasks of a group with a barrier are started at once, so there is nothing to wait for.
                life.pending.append(Running(action.task, action.attempt))
            case Stop():
                self._runner.stop(life, action)
                self._poke()  # what has ended already is confirmed at once
            case Delete():
                self._runner.delete(life, action)
                self._poke()

    def _clean_up(self, away: Collection[str] = ()) -> None:
        """End what nobody expects to run, put away what has ended, and remove what is left of deleted workflows."""
        try:
            for key in self._runner.strays(self._lives):
                self._runner.supervisor.kill(key)
            left = self._runner.workflows() - self._lives.keys()
            deleted = self._store.missing({*left, *away})
            self._runner.forget(deleted)
            for workflow in left - deleted:
                self._runner.put_away(workflow)
        except Unavailable as error:
            self._troubles.say("tasks", str(error))

    def _forget(self, workflows: Iterable[str]) -> None:
        try:
            self._runner.forget(workflows)
        except Unavailable as error:
            self._troubles.say("tasks", str(error))


def _wished(wish: Wish) -> list[Observation]:
    said = wish.observation
    match said.get("kind"):
        case "cancel":
            return [CancelAsked(str(said.get("message", "")), bool(said.get("force", False)))]
        case "retry":
            return [RetryAsked(said.get("task"))]
    return []


def _levels_lost(life: Life, before: Catalog, after: Catalog, now: float) -> Iterator[NewEvent]:
    """Tell of groups that go on although their pool has lost a level that they require."""
    old, new = before.pools.get(life.pool), after.pools.get(life.pool)
    lost = set(old.pool.topology.names if old else ()) - set(new.pool.topology.names if new else ())
    for group in life.state.groups if lost else ():
        levels = [level for level in life.digest.get("requires", {}).get(group.name, ()) if level in lost]
        if levels and not group.status.final and any(task.present for task in group.tasks):
            said = f'pool "{life.pool}" no longer has level "{levels[0]}", which group "{group.name}" requires'
            rest = "its tasks go on, and none of them can be placed anew until the level is back"
            yield NewEvent(now, "LevelLost", f"{said}; {rest}", life.id, life.pool, group.name)
