"""The cached positions of a queue: shared by concurrent requests, and never old."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import pytest

from coterie.service.pools.catalog import PoolCatalog
from coterie.service.queue import positions
from coterie.service.queue.positions import PositionCache, QueuePositions
from coterie.store import Store
from tests.eventually import PATIENCE_S

CATALOG = PoolCatalog({}, {}, {})


class CountedStore:
    """A store whose queue changes with every reading; a reading can be held up."""

    def __init__(self) -> None:
        self.readings = 0
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def last_event(self) -> int:
        """Return another number each time, so that nothing known is up to date."""
        self.begun.set()
        assert self.go.wait(PATIENCE_S)
        self.readings += 1
        return self.readings

    def queued(self) -> tuple[()]:
        """Return an empty queue."""
        return ()


def test_positions_that_are_long_out_of_date_are_read_again_by_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(positions, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store = CountedStore()
    monkeypatch.setattr(positions, "queue_positions", lambda *_: cast("QueuePositions", store.readings))
    cache = PositionCache(cast("Store", store))

    def asked() -> object:
        used: Callable[[], Mapping[str, int]] = dict
        return cache.now(lambda: CATALOG, used, exact=False)

    assert asked() == 1
    now[0] = 0.5
    store.go.clear()
    store.begun.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(asked)
        assert store.begun.wait(PATIENCE_S)
        assert asked() == 1, "another request is reading, and what is known is of a moment ago"
        now[0] = 3600.0
        second = pool.submit(asked)
        store.go.set()
        assert first.result(PATIENCE_S) == 2
        assert second.result(PATIENCE_S) in {2, 3}
