"""The cleanup after workflows: stray tasks, archives of ended ones, and the remains of deleted ones."""

from __future__ import annotations

import time

from coterie.errors import Unavailable
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.driven_workflow import home_of
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.store import Store, WorkflowRecord

# How long a turn may remove the remains of workflows: each is looked for among all processes of the machine.
_FORGET_S = 0.1


class Cleanup:
    """The removal of what no workflow needs; `deleted` are workflows whose remains are to be removed.

    `behind` is set while there are more of them than one turn removes.
    """

    def __init__(self, store: Store, table: WorkflowTable, drivers: Drivers, problems: ServiceProblems) -> None:
        self._store, self._table, self._drivers, self._problems = store, table, drivers, problems
        self.deleted: set[str] = set()
        self._failed: set[str] = set()  # of these, the ones that could not be removed when they were tried last
        self.behind = False

    def clean_up(self, *, first: bool = False) -> None:
        """End stray tasks, archive ended workflows, and remove the remains of deleted ones.

        Workflows that were archived long ago are only considered the `first` time.
        """
        for connection in self._drivers:
            with self._problems.reported(connection.problem):
                driver, spared = connection.driver, self._table.spared
                driver.end_strays(self._table.of_backend(connection), spared)
                left = driver.unarchived() - {*self._table.lives, *spared}
                self.deleted |= self._store.missing({*left, *(driver.archived() if first else ())})
                for workflow in left - self.deleted:
                    driver.archive(workflow)
        self.forget()

    def delete(self, workflow: str) -> None:
        """Remove the remains of a workflow that was just deleted, before a stop of the service can come between."""
        self.deleted.add(workflow)
        self._forget(workflow)

    def forget(self) -> None:
        """Remove the remains of deleted workflows for a limited time; failures are retried in a later turn."""
        until, self.behind = time.monotonic() + _FORGET_S, False
        if self.deleted <= self._failed:
            self._failed.clear()
        for workflow in self.deleted - self._failed:
            if not self._forget(workflow):
                self._failed.add(workflow)  # the others come first, one failure in a turn
                return
            if self.deleted and time.monotonic() >= until:
                self.behind = True
                return

    def _forget(self, workflow: str) -> bool:
        """Remove the remains of a workflow; return whether all of them are gone."""
        gone = True
        for connection in self._drivers:
            try:
                connection.driver.forget(workflow)
            except Unavailable as error:
                gone = False
                self._problems.say(connection.problem, str(error))
        if gone:
            self.deleted.discard(workflow)
        return gone

    def stop_strays(self, stored: WorkflowRecord) -> str:
        """Kill the tasks of a workflow that no state knows any more; return what may still run."""
        home, left = home_of(stored.digest), ""
        if home not in {connection.home for connection in self._drivers}:
            left = f'its tasks on backend "{home}" were not stopped, since that backend is not known here'
        for connection in self._drivers:
            try:
                connection.driver.end_strays(self._table.of_backend(connection), self._table.spared)
            except Unavailable as error:
                left = f"its tasks may still run: {error}" if connection.home == home else left
        return left
