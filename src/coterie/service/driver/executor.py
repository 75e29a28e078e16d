"""The executor of life-cycle actions, with repetition of those that cannot be performed now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from coterie.errors import Reason, Unavailable
from coterie.lifecycle import Action, Create, Delete, Enqueue, Go, Refused, ReleaseTasks, Stop, outstanding
from coterie.service.driver.backend_queues import BackendQueues, QueueAnswer
from coterie.service.driver.driven_workflow import LiveWorkflow
from coterie.service.driver.drivers import Connection, Drivers
from coterie.service.driver.problems import ServiceProblems
from coterie.store import NewEvent

# How long to wait after a temporary failure.
_PAUSE_S = 1.0


class ActionExecutor:
    """The executor of actions, each isolated to its workflow by `apart`.

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
        self.moved = False
        self.events: list[NewEvent] = []

    def behind(self, connection: Connection) -> bool:
        """Return whether actions on a backend are postponed."""
        return connection.problem in self._later.values()

    @property
    def late_at(self) -> float | None:
        """The time of the next postponed action."""
        return self._later_at if self._later else None

    def again(self, lives: Iterable[LiveWorkflow]) -> None:
        """Repeat all outstanding actions, which are idempotent."""
        for life in lives:
            with self._apart(life.id):
                self.do([(life, action) for action in outstanding(life.spec, life.state)])

    def enqueue(self, life: LiveWorkflow) -> None:
        """Queue the waiting gangs of a workflow again."""
        with self._apart(life.id):
            self.do([(life, each) for each in outstanding(life.spec, life.state) if isinstance(each, Enqueue)])

    def catch_up(self, lives: Mapping[str, LiveWorkflow], now: float) -> None:
        """Perform postponed actions once they are due."""
        if not self._later or now < self._later_at:
            return
        late, self._later = self._later, {}
        self.again([lives[name] for name in sorted(late) if name in lives])
        for problem in set(late.values()) - set(self._later.values()):
            self._problems.solve(problem)

    def drop(self, workflow: str) -> None:
        """Drop all postponed actions of a workflow."""
        self._later.pop(workflow, None)

    def do(self, actions: Iterable[tuple[LiveWorkflow, Action]]) -> None:
        """Perform actions in order; those after one that cannot be performed are postponed with it."""
        broken: set[str] = set()
        for life, action in actions:
            if life.id in self._later or life.id in broken:
                continue
            broken.add(life.id)  # unless it reaches the end
            try:
                with self._apart(life.id):
                    self._do(life, action)
                    broken.discard(life.id)
            except Unavailable as error:
                problem = self._drivers.problem(life)
                self._later[life.id] = problem
                self._later_at = self._now() + _PAUSE_S
                if self._problems.say(problem, str(error)):
                    said = NewEvent(self._now(), "ServiceProblem", str(error), workflow=life.id, pool=life.pool)
                    self.events.append(said)

    def _do(self, life: LiveWorkflow, action: Action) -> None:
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
