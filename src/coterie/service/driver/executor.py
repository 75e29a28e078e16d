"""The executor of life-cycle actions, with repetition of those that cannot be performed now."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from coterie.errors import Reason, Unavailable
from coterie.lifecycle import Action, Create, Created, Delete, Enqueue, Go, Refused, ReleaseTasks, Stop, outstanding
from coterie.service.driver.backend_queues import BackendQueues, QueueAnswer
from coterie.service.driver.connections.drivers import Connection, Drivers
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, home_of
from coterie.service.driver.workflows.texts import TextPending
from coterie.store import NewEvent

# How long to wait after a temporary failure.
_PAUSE_S = 1.0
# The actions that need no text: a workflow whose text is being read can be ended.
_WITHOUT_TEXT = (ReleaseTasks, Stop, Delete)
# How many tasks without a barrier are created at a time on this machine, where each of them takes milliseconds.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _PartialCreate:
    """Some tasks of a `Create` that may start one by one; the observation that all exist follows the last part."""

    create: Create
    last: bool


_Step = Action | _PartialCreate


class ActionExecutor:
    """The executor of actions, each isolated to its workflow by `apart`.

    Actions of one workflow keep their order, and workflows take turns, so that one with very many delays no other.
    `moved` is set when a queue cycle may place something. `events` are to be recorded.
    """

    def __init__(
        self,
        sites: BackendQueues,
        drivers: Drivers,
        now: Callable[[], float],
        problems: ServiceProblems,
        poke: Callable[[], None],
        apart: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._backends, self._drivers, self._now = sites, drivers, now
        self._problems, self._poke, self._apart = problems, poke, apart
        self._later: dict[str, str] = {}  # workflows, with the problem that they wait for
        self._later_at = 0.0
        self._todo: OrderedDict[str, tuple[LiveWorkflow, deque[_Step]]] = OrderedDict()
        self._unread: set[str] = set()  # workflows whose text is being read
        self.moved = False
        self.events: list[NewEvent] = []

    def behind(self, connection: Connection) -> bool:
        """Return whether actions on a backend are postponed."""
        return connection.problem in self._later.values()

    @property
    def late_at(self) -> float | None:
        """The time of the next postponed action."""
        return self._later_at if self._later else None

    @property
    def busy(self) -> bool:
        """Whether actions are left that `perform` had no time for."""
        return bool(self._todo)

    def again(self, lives: Iterable[LiveWorkflow]) -> None:
        """Repeat all outstanding actions, which are idempotent; they take the place of those not performed yet."""
        for life in lives:
            with self._apart(life.id):
                self._todo.pop(life.id, None)
                self.add([(life, action) for action in outstanding(life.spec, life.state)])

    def add(self, actions: Iterable[tuple[LiveWorkflow, Action]]) -> None:
        """Take on actions in their order; requests to the queue that nothing precedes are made at once."""
        for life, action in actions:
            if isinstance(action, Enqueue) and life.id not in self._todo:
                self.do([(life, action)])
                continue
            _, mine = self._todo.setdefault(life.id, (life, deque()))
            mine.extend(self._parts(life, action))

    def perform(self, seconds: float) -> None:
        """Perform actions, those of different workflows in turn, for a limited time."""
        until = time.monotonic() + seconds
        while self._todo and time.monotonic() < until:
            name, (life, mine) = self._todo.popitem(last=False)
            step = mine.popleft()
            if mine:
                self._todo[name] = life, mine
            self.do([(life, step)])

    def _parts(self, life: LiveWorkflow, action: Action) -> Iterator[_Step]:
        if not isinstance(action, Create) or action.held or len(action.tasks) <= _AT_ONCE or home_of(life.digest):
            yield action
            return
        for first in range(0, len(action.tasks), _AT_ONCE):
            some = replace(action, tasks=action.tasks[first : first + _AT_ONCE])
            yield _PartialCreate(some, last=first + _AT_ONCE >= len(action.tasks))

    def enqueue(self, life: LiveWorkflow) -> None:
        """Queue the waiting gangs of a workflow again."""
        with self._apart(life.id):
            self.do([(life, each) for each in outstanding(life.spec, life.state) if isinstance(each, Enqueue)])

    def catch_up(self, lives: Mapping[str, LiveWorkflow], now: float) -> None:
        """Perform postponed actions once they are due."""
        if not self._later or now < self._later_at:
            return
        late, self._later = self._later, {}
        for life in [lives[name] for name in sorted(late) if name in lives]:
            self._todo.pop(life.id, None)
            with self._apart(life.id):
                self.do([(life, action) for action in outstanding(life.spec, life.state)])
        for problem in set(late.values()) - set(self._later.values()):
            self._problems.solve(problem)

    def resume(self, life: LiveWorkflow) -> None:
        """Perform the actions of a workflow that waited for its text."""
        self._unread.discard(life.id)
        self.again([life])

    def drop(self, workflow: str) -> None:
        """Drop all postponed actions of a workflow."""
        self._later.pop(workflow, None)
        self._todo.pop(workflow, None)
        self._unread.discard(workflow)

    def do(self, actions: Iterable[tuple[LiveWorkflow, _Step]]) -> None:
        """Perform actions in order; those after one that cannot be performed are postponed with it.

        While a text is being read, those that need none are performed: later, `resume` repeats only what is still
        outstanding by then.
        """
        broken: set[str] = set()
        for life, action in actions:
            if life.id in self._later or life.id in broken:
                continue
            if life.id in self._unread and not isinstance(action, _WITHOUT_TEXT):
                continue
            broken.add(life.id)  # unless it reaches the end
            try:
                with self._apart(life.id):
                    self._do(life, action)
                    broken.discard(life.id)
            except TextPending:
                self._unread.add(life.id)
                broken.discard(life.id)
            except Unavailable as error:
                problem = self._drivers.problem(life)
                self._later[life.id] = problem
                self._later_at = self._now() + _PAUSE_S
                if self._problems.say(problem, str(error)):
                    said = NewEvent(self._now(), "ServiceProblem", str(error), workflow=life.id, pool=life.pool)
                    self.events.append(said)

    def _do(self, life: LiveWorkflow, action: _Step) -> None:
        sites = self._backends
        match action:
            case Enqueue():
                self.moved = True
                if backend := self._drivers.moved(life, sites.catalog):
                    message = f'pool "{life.pool}" has moved to backend "{backend}"; the workflow stays where it began'
                    refused = Refused(action.group, action.attempt, Reason.SCHEDULER_REFUSED.value, message)
                    life.pending.append(refused)
                elif (news := sites.enqueue(life, action)) is not None:
                    note(life, news)
            case ReleaseTasks():
                self.moved = True
                life.pending.append(sites.release(life, action))
            case Create():
                life.pending += self._drivers.of(life).driver.create(life, action, sites.seats(life, action))
            case _PartialCreate(create, last):
                told = self._drivers.of(life).driver.create(life, create, sites.seats(life, create))
                life.pending += (each for each in told if last or not isinstance(each, Created))
            case Go():
                life.pending += self._drivers.of(life).driver.go(life, action)
            case Stop():
                self._drivers.of(life).driver.stop(life, action)
                self._poke()  # an already ended task is confirmed at once
            case Delete():
                self._drivers.of(life).driver.delete(life, action)
                self._poke()


def note(life: LiveWorkflow, news: QueueAnswer) -> None:
    """Apply an answer of the queue to a workflow; a repeated one counts once."""
    life.pending.append(news.observation)
    life.placed |= {(row.group, row.task, row.attempt): row for row in news.placed}
