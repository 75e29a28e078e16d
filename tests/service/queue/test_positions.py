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
from coterie.store import QueuedWorkflow, Store, Summary
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


def test_a_workflow_has_the_best_position_of_its_groups_as_long_as_it_is_queued() -> None:
    waiting = [
        QueuedWorkflow("a-1", "p", "NORMAL", 1, [["late", 9.0, 1, False], ["early", 2.0, 1, False]]),
        QueuedWorkflow("b-1", "p", "NORMAL", 2, [["g", 1.0, 1, False]]),
        QueuedWorkflow("c-1", "p", "NORMAL", 3, None),
    ]
    found = positions.queue_positions(waiting, CATALOG, dict)

    assert found.positions == {("b-1", "g"): 1, ("a-1", "early"): 2, ("a-1", "late"): 3}
    assert found.of(_listed("a-1", queued=True)) == 2, "a page says only that it is queued"
    assert found.of(_listed("b-1", queued=[["g", 1.0, 1, False]])) == 1
    assert found.of(_listed("b-1", queued=[])) is None
    assert found.of(_listed("c-1", queued=False)) is None


def _listed(ident: str, queued: object) -> Summary:
    return cast("Summary", SimpleNamespace(id=ident, digest={"queued": queued}))
