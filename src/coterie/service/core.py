"""The parts that all operations of a service share: store, catalog, driver, and the news of changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from coterie.errors import CoterieError, Unavailable
from coterie.service.clock import SteadyClock
from coterie.service.driver.election.ownership import claim, register
from coterie.service.driver.leader import Leader
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.texts import nothing_fresh
from coterie.service.pools.catalog import LiveCatalog, PoolCatalog
from coterie.service.pools.usage import PoolUsage
from coterie.service.queue.positions import PositionCache, QueuePositions, is_queued
from coterie.service.settings import Settings
from coterie.service.views.logs import Logs
from coterie.store import Store, Summary, WorkflowQuery

Json = dict[str, Any]


class ServiceCore:
    """One store with its catalog and its driver; the operations on workflows and pools are built on it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._catalogue = LiveCatalog(settings)
        self._catalogue.current()
        self.store = Store.open(settings.store)
        try:
            identity = self.store.identity()
            self._logs = Logs(settings, identity, lambda: self._catalogue.current().backends)
            claim(settings.tasks, identity, self.store.name)
            register(self.store, settings.tasks, settings.holder)
        except CoterieError:
            self.store.close()
            raise
        clock = settings.now
        if isinstance(clock, SteadyClock) and clock.ahead_s and not self._unfinished():
            clock.adjust()
        self._problems = ServiceProblems(settings.now)
        self._fresh = nothing_fresh()
        self._bell = threading.Condition()
        self._rings = 0
        self._driver = Leader(self.store, settings, self._catalogue, self._problems, self._ring, self._fresh)
        self._live: tuple[tuple[int, int, int], PoolUsage] | None = None
        self._position_cache = PositionCache(self.store)
        self._stopped = False

    def _unfinished(self) -> bool:
        return bool(self.store.workflows(WorkflowQuery(finished=False), limit=1).items)

    def _ring(self) -> None:
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def _queue_positions(self, *, exact: bool) -> QueuePositions:
        return self._position_cache.now(self._catalog, lambda: self._now().gpus, exact=exact)

    def _positions(self, items: Sequence[Summary]) -> list[int | None]:
        """Return the positions of workflows in the queue; where none is queued, the queue is not read."""
        found = self._queue_positions(exact=False) if any(map(is_queued, items)) else QueuePositions()
        return [found.of(item) for item in items]

    def _position(self, item: Summary) -> int | None:
        """Return the position of a workflow, or None where it cannot be determined: an answer never fails for this."""
        try:
            return self._positions([item])[0]
        except Unavailable:
            return None

    def _catalog(self) -> PoolCatalog:
        return self._catalogue.refresh(self.store.pools())

    def _now(self) -> PoolUsage:
        catalog = self._catalog()
        # Capacity is also returned without an event, so a cached reading expires soon.
        mark = (self.store.last_event(), catalog.number, int(time.monotonic() * 4))
        known = self._live
        if known is None or known[0] != mark:
            known = self._live = (mark, PoolUsage.read(self.store, catalog))
        return known[1]
