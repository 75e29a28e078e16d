"""The table of driven workflows, each isolated from the errors of the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from coterie.backends.base.driver import BackendEvent, News
from coterie.errors import NotFound, Unavailable
from coterie.lifecycle import LossCause, Lost, Running, Scheduled, Up
from coterie.service.driver.backend_queues import BackendQueues, FailedTask
from coterie.service.driver.connections.drivers import Connection, Drivers
from coterie.service.driver.executor import ActionExecutor
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.deadlines import Deadlines
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, home_of
from coterie.service.driver.workflows.quarantine import Quarantine
from coterie.service.driver.workflows.texts import CachedTexts, FreshWorkflow
from coterie.store import NewEvent, Store


class WorkflowTable:
    """The unfinished workflows that this leader drives, with their deadlines and outstanding actions.

    One with an unexpected error leaves the table for the quarantine. The `backlog` are workflows that only wait, and
    are not in the table yet.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float],
        problems: ServiceProblems,
        backends: BackendQueues,
        drivers: Drivers,
        texts: CachedTexts,
        poke: Callable[[], None],
    ) -> None:
        self._store, self._problems, self._backends = store, problems, backends
        self._drivers, self._texts, self._now = drivers, texts, now
        self.lives: dict[str, LiveWorkflow] = {}
        self.backlog: deque[str] = deque()
        self.deadlines = Deadlines()
        self.quarantine = Quarantine(problems)
        self.executor = ActionExecutor(backends, drivers, now, problems, poke, self.apart)

    def __contains__(self, workflow: str) -> bool:
        return workflow in self.lives

    def __iter__(self) -> Iterator[LiveWorkflow]:
        return iter(list(self.lives.values()))

    @property
    def spared(self) -> set[str]:
        """The unfinished workflows that are not driven now, and whose tasks are left alone."""
        return {*self.quarantine, *self.backlog}

    def get(self, workflow: str) -> LiveWorkflow | None:
        """Return a driven workflow."""
        return self.lives.get(workflow)

    def of_backend(self, connection: Connection) -> dict[str, LiveWorkflow]:
        """Return the workflows of one backend."""
        return {name: life for name, life in self.lives.items() if home_of(life.digest) == connection.home}

    def add(self, life: LiveWorkflow) -> None:
        """Drive a workflow."""
        self.lives[life.id] = life
        self.deadlines.schedule(life)
        with self._problems.reported(self._drivers.problem(life)):
            self._drivers.of(life).driver.adopt(life)

    def take_up(self, workflows: Iterable[str]) -> None:
        """Drive new workflows; those that were submitted here and are unchanged since then are not read again."""
        wanted = [workflow for workflow in dict.fromkeys(workflows) if workflow not in self.lives]
        fresh = {workflow: found for workflow in wanted if (found := self._texts.submitted(workflow)) is not None}
        versions = self._store.versions(fresh) if fresh else {}
        for workflow in wanted:
            known = fresh.get(workflow)
            unchanged = known is not None and versions.get(workflow) == known.stored.version
            self.load(workflow, known if unchanged else None)

    def load(self, workflow: str, fresh: FreshWorkflow | None = None) -> LiveWorkflow | None:
        """Drive a workflow of the store, also one in quarantine; None where it is gone, or cannot be driven."""
        with self.apart(workflow):
            try:
                if fresh is None:
                    life = LiveWorkflow.of(self._store.workflow(workflow))
                else:
                    life = LiveWorkflow.of(fresh.stored, (fresh.spec, fresh.state))
            except NotFound:
                self.quarantine.leave(workflow)
                return None
            self.quarantine.take(workflow)
            self.add(life)
            self.executor.again([life])
        self.quarantine.mark_driven(workflow)
        return self.lives.get(workflow)

    def tell(self, workflow: str, told: News) -> None:
        """Note an observation of a workflow, and the node that it may name, or an event."""
        if (life := self.lives.get(workflow)) is None:
            return
        if isinstance(told, BackendEvent):
            where = (life.id, life.pool, told.group, told.task, told.attempt)
            self.executor.events.append(NewEvent(self._now(), told.kind, told.message, *where))
            return
        life.pending.append(told)
        if isinstance(told, Scheduled | Up | Running) and (row := self._backends.scheduled(life, told)) is not None:
            life.placed[row.group, row.task, row.attempt] = row

    def lose(self, failures: Iterable[FailedTask]) -> None:
        """Note that tasks were lost with their nodes."""
        for each in failures:
            self.tell(each.workflow, Lost(each.task, each.attempt, LossCause.NODE_FAILED, each.why))

    def remove(self, life: LiveWorkflow) -> None:
        """Drive a finished workflow no more, and archive what is left of it."""
        del self.lives[life.id]
        self._forget(life.id)
        with self._problems.reported(self._drivers.problem(life)):
            # The next cleanup archives what cannot be archived now.
            self._drivers.of(life).driver.archive(life.id)

    def release(self, workflow: str) -> None:
        """Drive a workflow no more; what it holds, and its tasks, stay."""
        self.lives.pop(workflow, None)
        self._forget(workflow)
        self._backends.withdraw(workflow)
        self._drivers.release(workflow)

    @contextmanager
    def apart(self, workflow: str) -> Iterator[None]:
        """Handle one workflow in isolation: its errors must not keep the others from being driven."""
        try:
            yield
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - nobody knows what it is, so nothing more is done with this one
            self.put_in_quarantine(workflow, error)

    def put_in_quarantine(self, workflow: str, error: Exception) -> None:
        """Put a workflow in quarantine."""
        self.release(workflow)
        self.quarantine.put(workflow, error)

    def _forget(self, workflow: str) -> None:
        self.deadlines.drop(workflow)
        self.executor.drop(workflow)
        self._texts.forget(workflow)
