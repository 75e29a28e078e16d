"""The intake of workflows: those of the store when a leader begins, and newly submitted ones after that."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from coterie.service.driver.backend_queues import BackendQueues, FailedTask
from coterie.service.driver.catalog_changes import CatalogChanges
from coterie.service.driver.cleanup import Cleanup
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.queue.order import PRIORITIES
from coterie.store import Store

# The place of a workflow in the order of the queue, and its id.
_Waiting = tuple[int, int, str]
# How long a turn may take workflows up, before it does the rest of its work and the next turn continues.
_TAKE_UP_S = 0.1
# How many announcements are read at a time.
_PAGE = 50
# The version of a stored workflow that no leader has changed yet.
_FIRST_VERSION = 1


class Intake:
    """The workflows of the store that are to be driven from now on.

    `behind` is set while there are more announcements than one turn takes up.
    """

    def __init__(
        self, store: Store, table: WorkflowTable, backends: BackendQueues, changes: CatalogChanges, cleanup: Cleanup
    ) -> None:
        self._store, self._table, self._backends = store, table, backends
        self._changes, self._cleanup = changes, cleanup
        self._seen = store.last_event()
        self.behind = False

    def begin(self) -> None:
        """Drive all stored workflows that hold something or are being ended; the others follow turn by turn."""
        table = self._table
        held = self._store.held()
        failures: list[FailedTask] = []
        resting: list[_Waiting] = []
        unseen: list[_Waiting] = []
        for stored in self._store.unfinished():
            rows = held.get(stored.id, ())
            if not rows and LiveWorkflow.rests(stored):
                # What runs or is being ended comes first; these follow in the order of the queue, some in each turn.
                line = unseen if stored.version == _FIRST_VERSION else resting
                line.append((PRIORITIES.index(stored.priority), stored.number, stored.id))
                continue
            with table.apart(stored.id):
                life = LiveWorkflow.of(stored)
                failures += self._backends.restore(life, rows)
                table.add(life)
            if stored.id in table.quarantine:
                self._backends.keep(stored, rows)
        table.backlog.extend(backlog_order(resting, unseen))
        table.executor.again(table)
        table.lose(failures)
        self._changes.readmit(table)

    def take_in(self) -> None:
        """Take up new workflows, then waiting ones from before a restart, for a limited time."""
        table = self._table
        until = time.monotonic() + _TAKE_UP_S
        self.behind = True
        while self.behind and time.monotonic() < until:
            said, seen = self._store.announcements(self._seen, ("Submitted", "Deleted"), _PAGE)
            self._cleanup.deleted.update(workflow for kind, workflow in said if kind == "Deleted")
            table.take_up(workflow for kind, workflow in said if kind == "Submitted")
            # Only now: a store that fails meanwhile must not make anybody be passed over.
            self._seen, self.behind = seen, len(said) == _PAGE
        while table.backlog and time.monotonic() < until:
            workflow = table.backlog[0]
            if workflow not in table and (life := table.load(workflow)) is not None:
                self._changes.readmit([life])
            table.backlog.popleft()


def backlog_order(resting: Iterable[_Waiting], unseen: Iterable[_Waiting]) -> Iterator[str]:
    """Yield the ids of workflows in the order in which they are loaded after a restart.

    Priority decides. Within one, those that were submitted while nobody led, `unseen`, alternate with those that waited
    before: they need not wait until all of these are loaded.
    """
    lines = [sorted(line) for line in (resting, unseen)]
    for priority in range(len(PRIORITIES)):
        same = [[found for found in line if found[0] == priority] for line in lines]
        yield from (found[-1] for pair in zip_longest(*same) for found in pair if found is not None)
