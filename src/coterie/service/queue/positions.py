"""The positions of waiting gangs in the queue, read from the store alone, so that every replica can report them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from coterie.config.configuration import GpuQuota
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.queue.order import OrderInputs, in_order
from coterie.store import QueuedWorkflow, Store, Summary

# Reading the queue for lists takes at most about a fiftieth of the time, however many gangs wait.
_SHARE = 50
# How long positions may be shown after their time while others read them again.
_LATE_S = 1.0


@dataclass(frozen=True, slots=True)
class QueuePositions:
    """The positions of gangs, counted from one in each pool, and the number of waiting gangs per pool."""

    positions: Mapping[tuple[str, str], int] = field(default_factory=dict)  # by workflow and group
    waiting: Mapping[str, int] = field(default_factory=dict)
    best: Mapping[str, int] = field(default_factory=dict)  # by workflow

    def of(self, workflow: Summary) -> int | None:
        """Return the best position of a workflow's groups; None where none is in the queue."""
        return self.best.get(workflow.id) if is_queued(workflow) else None


def is_queued(workflow: Summary) -> bool:
    """Return whether groups of a workflow are in the queue; older releases wrote their entries, and not how many."""
    return bool(workflow.digest.get("queued") or workflow.digest.get("queued_groups"))


def queue_positions(
    workflows: Iterable[QueuedWorkflow], catalog: PoolCatalog, used: Callable[[], Mapping[str, int]]
) -> QueuePositions:
    """Return the positions of workflows' gangs; `used` is called only where a pool has a guarantee."""
    waiting = {
        (each.id, name): OrderInputs(each.pool, joins, each.priority, since, each.number, gpus)
        for each in workflows
        for name, since, gpus, joins in each.queued or ()
    }
    quotas = {name: known.pool.gpus for name, known in catalog.pools.items()}
    # A position is within its pool, so the shares of competing pools do not matter, only guarantees.
    gpus = used() if any(quota.guarantee for quota in quotas.values()) else {}
    counted: Counter[str] = Counter()
    positions: dict[tuple[str, str], int] = {}
    best: dict[str, int] = {}
    for key in in_order(waiting, lambda pool: gpus.get(pool, 0), lambda pool: quotas.get(pool, GpuQuota())):
        counted[waiting[key].pool] += 1
        positions[key] = counted[waiting[key].pool]
        best.setdefault(key[0], positions[key])
    return QueuePositions(positions, counted, best)


class PositionCache:
    """The cached positions, read again once something has happened and some time has passed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[int, int, float, QueuePositions] | None = None
        self._reading = threading.Lock()

    def now(
        self, current: Callable[[], PoolCatalog], used: Callable[[], Mapping[str, int]], *, exact: bool
    ) -> QueuePositions:
        """Return the current positions or, unless they must be `exact`, those of a moment ago."""
        known, at = self._known, time.monotonic()
        if known is not None and not exact:
            # While one request reads the queue, the others do not, for a moment: they would all read the same.
            late = at >= known[2] + _LATE_S
            if at < known[2] or (not late and self._reading.locked()):
                return known[3]
        with self._reading:
            return self._read(current, used)

    def _read(self, current: Callable[[], PoolCatalog], used: Callable[[], Mapping[str, int]]) -> QueuePositions:
        known, began = self._known, time.monotonic()
        last, catalog = self._store.last_event(), current()
        if known is not None and known[:2] == (last, catalog.number):
            found = known[3]
        else:
            found = queue_positions(self._store.queued(), catalog, used)
        ended = time.monotonic()
        self._known = (last, catalog.number, ended + _SHARE * (ended - began), found)
        return found
