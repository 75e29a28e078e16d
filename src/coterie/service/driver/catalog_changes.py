"""Changes of pools, backends and nodes, applied to what is driven."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.lifecycle import Recovered
from coterie.service.driver.backend_queues import BackendQueues, FailedTask
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.connections.watch import BackendWatch
from coterie.service.driver.pool_changes import levels_lost, violated
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.texts import CachedTexts
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.pools.catalog import LiveCatalog
from coterie.store import Store


class CatalogChanges:
    """The step of a turn that follows the catalog and the health of nodes."""

    def __init__(
        self,
        store: Store,
        catalogue: LiveCatalog,
        backends: BackendQueues,
        drivers: Drivers,
        texts: CachedTexts,
        table: WorkflowTable,
        watch: BackendWatch,
    ) -> None:
        self._store, self._catalogue, self._backends = store, catalogue, backends
        self._drivers, self._texts, self._table, self._watch = drivers, texts, table, watch

    def connect(self) -> None:
        """Open the drivers of new backends, and let them follow the workflows that are theirs."""
        for connection in self._drivers.apply(self._backends.catalog):
            self._watch.add(connection)
            for life in self._table.of_backend(connection).values():
                connection.driver.adopt(life)

    def apply(self, now: float) -> None:
        """Apply changes of pools and nodes; tasks on failed nodes are lost."""
        table, backends = self._table, self._backends
        before, catalog = backends.catalog, self._catalogue.refresh(self._store.pools())
        if catalog.number != before.number:
            table.lose(backends.apply(catalog, now))
            if catalog.clusters.keys() - before.clusters.keys():
                table.lose(self._held_again())
            table.executor.moved = True
            self.connect()
            self.readmit(table)
            for life in table:
                with table.apart(life.id):
                    table.executor.events += levels_lost(life, before, catalog, now)
                    table.executor.events += violated(life, self._texts, before, catalog, now)
                table.executor.enqueue(life)
        if (at := backends.failing_at) is not None and at <= now:
            table.lose(backends.failed(table.lives, now))

    def readmit(self, lives: Iterable[LiveWorkflow]) -> None:
        """Let workflows use failed nodes again that are healthy now."""
        for life in lives:
            with self._table.apart(life.id):
                life.pending += [Recovered(node) for node in self._backends.recovered(life)]

    def _held_again(self) -> list[FailedTask]:
        """Restore the holdings of tasks on clusters that have just become known."""
        held = self._store.held()
        return [failure for life in self._table for failure in self._backends.restore(life, held.get(life.id, ()))]
