"""Doing what the lives of workflows ask for, again and later where it cannot be done now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from coterie.errors import Unavailable
from coterie.lifecycle import Action, Create, Delete, Enqueue, Go, Release, Running, Stop, outstanding
from coterie.service.driver.backend_queues import News, Sites
from coterie.service.driver.driven_workflow import Life
from coterie.service.driver.problems import Troubles
from coterie.service.driver.runner import Runner
from coterie.store import NewEvent

# How long to wait after something could not be done for the moment.
_PAUSE_S = 1.0


class Hands:
    """Does actions, each for its workflow, which is kept `apart` from the others meanwhile.

    `moved` is set when it may be worth asking the queue. `events` are to be recorded.
    """

    def __init__(
        self,
        sites: Sites,
        runner: Runner,
        now: Callable[[], float],
        troubles: Troubles,
        poke: Callable[[], None],
        apart: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._sites, self._runner, self._now = sites, runner, now
        self._troubles, self._poke, self._apart = troubles, poke, apart
        self._later: set[str] = set()
        self._later_at = 0.0
        self.moved = False
        self.events: list[NewEvent] = []

    @property
    def behind(self) -> bool:
        """Whether something could not be done and is to be done later."""
        return bool(self._later)

    @property
    def late_at(self) -> float | None:
        """When that is."""
        return self._later_at if self._later else None

    def again(self, lives: Iterable[Life]) -> None:
        """Do again whatever is outstanding: doing something twice is doing it once."""
        for life in lives:
            with self._apart(life.id):
                self.do([(life, action) for action in outstanding(life.spec, life.state)])

    def enqueue(self, life: Life) -> None:
        """Put the gangs of a workflow that wait into the queue again."""
        with self._apart(life.id):
            self.do([(life, each) for each in outstanding(life.spec, life.state) if isinstance(each, Enqueue)])

    def catch_up(self, lives: Mapping[str, Life], now: float) -> None:
        """Do what could not be done before, once it is time."""
        if not self._later or now < self._later_at:
            return
        late, self._later = self._later, set()
        self.again([lives[name] for name in sorted(late) if name in lives])
        if not self._later:
            self._troubles.solve("tasks")

    def drop(self, workflow: str) -> None:
        """Do nothing more for a workflow."""
        self._later.discard(workflow)

    def do(self, actions: Iterable[tuple[Life, Action]]) -> None:
        """Do actions in order; what comes after one that cannot be done waits with it."""
        broken: set[str] = set()
        for life, action in actions:
            if life.id in self._later or life.id in broken:
                continue
            broken.add(life.id)  # unless it comes to the end
            try:
                with self._apart(life.id):
                    self._do(life, action)
                    broken.discard(life.id)
            except Unavailable as error:
                self._later.add(life.id)
                self._later_at = self._now() + _PAUSE_S
                if self._troubles.say("tasks", str(error)):
                    said = NewEvent(self._now(), "Trouble", str(error), workflow=life.id, pool=life.pool)
                    self.events.append(said)

    def _do(self, life: Life, action: Action) -> None:
        sites = self._sites
        match action:
            case Enqueue():
                self.moved = True
                if (news := sites.enqueue(life, action)) is not None:
                    note(life, news)
            case Release():
                self.moved = True
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


def note(life: Life, news: News) -> None:
    """Take in what the queue has to say about a workflow. Said twice, it counts once."""
    life.pending.append(news.observation)
    life.placed |= {(row.group, row.task, row.attempt): row for row in news.placed}
