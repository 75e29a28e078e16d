"""The executor of life-cycle actions, with repetition of those that cannot be performed now."""

from __future__ import annotations

import math
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

# How long to wait after a temporary failure; longer by the second where very many workflows wait, for their number.
_PAUSE_S, _PAUSE_EACH_S = 1.0, 0.005
# How long a turn may repeat postponed actions.
_REPEAT_S = 0.1
# The actions that need no text: a workflow whose text is being read can be ended.
_WITHOUT_TEXT = (ReleaseTasks, Stop, Delete)
# How many requests to the queue are made at once; those of a workflow with more groups wait for `perform`.
_ENQUEUED = 500
# A workflow with more actions left than this delays others by little if it goes on in the next turn.
_MANY = 32
# How many tasks without a barrier are created at a time on this machine, where each of them takes milliseconds.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _PartialCreate:
    """Some tasks of a `Create` that may start one by one; the observation that all exist follows the last part."""

    create: Create
    last: bool


_Step = Action | _PartialCreate
# Workflows with their steps; they take turns.
_Steps = OrderedDict[str, tuple[LiveWorkflow, deque[_Step]]]


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
        # Postponed workflows, with the problem that they wait for and the time of the next attempt, soonest first.
        self._later: dict[str, tuple[str, float]] = {}
        self._repeated: dict[str, str] = {}  # postponed workflows whose actions are being repeated, with that problem
        self._repeats: _Steps = OrderedDict()  # apart from the others, so that very many of them delay nobody
        self._todo: _Steps = OrderedDict()
        self._unread: set[str] = set()  # workflows whose text is being read
        self.moved = False
        self.events: list[NewEvent] = []

    def behind(self, connection: Connection) -> bool:
        """Return whether actions on a backend are postponed."""
        return connection.problem in self._unsolved()

    @property
    def late_at(self) -> float | None:
        """The time of the next postponed action."""
        return next(iter(self._later.values()))[1] if self._later else None

    @property
    def busy(self) -> bool:
        """Whether actions are left that `perform` and `catch_up` had no time for."""
        return bool(self._todo or self._repeats)

    def again(self, lives: Iterable[LiveWorkflow]) -> None:
        """Repeat all outstanding actions, which are idempotent; they take the place of those not performed yet."""
        for life in lives:
            with self._apart(life.id):
                self._clear(life.id)
                self.add([(life, action) for action in outstanding(life.spec, life.state)])

    def add(self, actions: Iterable[tuple[LiveWorkflow, Action]]) -> None:
        """Take on actions in their order; some requests to the queue that nothing precedes are made at once."""
        at_once = _ENQUEUED
        for life, action in actions:
            first = life.id not in self._todo and life.id not in self._repeats
            if isinstance(action, Enqueue) and first and at_once:
                at_once -= 1
                self.do([(life, action)])
            else:
                self._put(self._repeats if life.id in self._repeats else self._todo, life, action)

    def perform(self, seconds: float, brief_s: float = math.inf, asked: Callable[[], bool] = lambda: False) -> None:
        """Perform actions, those of different workflows in turn, for a limited time.

        That is only `brief_s` where workflows with very many actions are left, and others, whose actions have all been
        performed, or users who have `asked` for something, wait for the next turn.
        """
        began, others = time.monotonic(), False
        while self._todo:
            spent = time.monotonic() - began
            if spent >= seconds or (spent >= brief_s and (others or asked()) and self._many_left()):
                break
            before = len(self._todo)
            self._step(self._todo)
            others = others or len(self._todo) < before

    def _many_left(self) -> bool:
        return all(len(steps) > _MANY for _, steps in self._todo.values())

    def _put(self, steps: _Steps, life: LiveWorkflow, action: Action) -> None:
        _, mine = steps.setdefault(life.id, (life, deque()))
        mine.extend(self._parts(life, action))

    def _step(self, steps: _Steps) -> None:
        name, (life, mine) = steps.popitem(last=False)
        step = mine.popleft()
        if mine:
            steps[name] = life, mine
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
        """Repeat postponed actions that are due, those of different workflows in turn, for a limited time."""
        until = time.monotonic() + _REPEAT_S
        while time.monotonic() < until:
            due = next((name for name, (_, at) in self._later.items() if at <= now), None)
            if due is not None:
                self._repeat(due, lives.get(due))
            elif not self._repeats:
                break
            if self._repeats:
                self._step(self._repeats)
        done = {self._repeated.pop(name) for name in list(self._repeated) if name not in self._repeats}
        for problem in done - self._unsolved():
            self._problems.solve(problem)

    def _repeat(self, workflow: str, life: LiveWorkflow | None) -> None:
        self._repeated[workflow], _ = self._later.pop(workflow)
        if life is not None:
            self._clear(workflow)
            with self._apart(workflow):
                for action in outstanding(life.spec, life.state):
                    self._put(self._repeats, life, action)

    def _unsolved(self) -> set[str]:
        """Return the problems for which actions are postponed."""
        return {problem for problem, _ in self._later.values()} | set(self._repeated.values())

    def resume(self, life: LiveWorkflow) -> None:
        """Perform the actions of a workflow that waited for its text."""
        self._unread.discard(life.id)
        self.again([life])

    def drop(self, workflow: str) -> None:
        """Drop all postponed actions of a workflow."""
        self._later.pop(workflow, None)
        self._clear(workflow)
        self._unread.discard(workflow)

    def _clear(self, workflow: str) -> None:
        """Drop the actions of a workflow that are not performed yet."""
        self._todo.pop(workflow, None)
        self._repeats.pop(workflow, None)

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
                self._later[life.id] = problem, self._now() + _PAUSE_S + _PAUSE_EACH_S * len(self._later)
                self._clear(life.id)  # all that is outstanding then is repeated
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
