"""The use of pools over time: samples of a running service, their summaries, and how long they are kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import NotFound
from coterie.service.pools.history import KEPT_S, SAMPLE_S, points
from coterie.service.pools.usage import unfinished
from coterie.service.service import Service
from coterie.store import PoolSample, Store
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single

FOREVER = "sleep 600"


class Clock:
    """The time of the machine, and how far it was moved on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def sample(at: float, used: int = 0, waiting: int = 0, share: float | None = None, pool: str = "main") -> PoolSample:
    return PoolSample(pool, at, 32, used, 32 - used, waiting, 4 * waiting, 10.0 * waiting, share)


def test_a_running_service_samples_its_pools_and_keeps_that_over_a_restart(tmp_path: Path) -> None:
    clock, place = Clock(), ServiceFolder(tmp_path / "place")
    with Service(place.settings(now=clock)) as service:
        for _ in range(9):  # on eight nodes
            service.submit(single("train", FOREVER))
        eventually(lambda: service.health()["waiting"] == 1 and service.pool("main")["gpus"]["used"] == 32)

        def minute_later() -> dict[str, Any]:
            before = service.store.samples("main", 0)
            clock.ahead += SAMPLE_S
            eventually(lambda: len(service.store.samples("main", 0)) > len(before))
            found: dict[str, Any] = service.pool_history("main", 1, 60)["points"][-1]
            return found

        # Without a sample since they started.
        now = service.pool_history("main", 1, 60)["now"]
        assert (now["gpus"], now["used"], now["free"], now["waiting"], now["waiting_gpus"]) == (32, 32, 0, 1, 4)
        full = minute_later()
        assert (full["gpus"], full["used"], full["free"], full["fragmentation"]) == (32, 32, 0, None)
        assert (full["waiting"], full["waiting_gpus"]) == (1, 4)
        assert SAMPLE_S <= minute_later()["longest_wait_s"] < 10 * SAMPLE_S
        for each in unfinished(service.store):
            service.cancel(each.id, force=True)
        eventually(lambda: service.pool("main")["gpus"]["free"] == 32)
        empty = minute_later()
        assert (empty["free"], empty["waiting"], empty["fragmentation"]) == (32, 0, 0)
        before = service.pool_history("main", 1, 60)["points"]
    with Service(place.settings(now=clock)) as again:
        assert again.pool_history("main", 1, 60)["points"][: len(before) - 1] == before[:-1]


def test_a_pool_that_is_not_there_has_no_history(tmp_path: Path) -> None:
    with Service(ServiceFolder(tmp_path / "place").settings()) as service, pytest.raises(NotFound):
        service.pool_history("other", 1, 60)


def test_steps_have_the_mean_of_use_and_the_most_that_waited() -> None:
    found = [sample(0, 4, 1, 0.5), sample(60, 8, 3), sample(180, 0)]
    first, second = points(found, 0.0, 120)
    assert (first["at"], first["used"], first["free"], first["fragmentation"]) == (0, 6, 26, 0.5)
    assert (first["waiting"], first["waiting_gpus"], first["longest_wait_s"]) == (3, 12, 30)
    assert (second["at"], second["used"], second["fragmentation"]) == (120, 0, None)


def test_minutes_in_which_nothing_ran_are_missing() -> None:
    assert [each["at"] for each in points([sample(0), sample(600)], 0.0, 60)] == [0, 600]


def test_a_minute_is_stored_once_and_a_day_is_kept(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.db")) as store:
        store.add_samples([sample(0, 4), sample(0, 8, pool="b")], -KEPT_S)
        store.add_samples([sample(60, 4)], 60 - KEPT_S)
        store.add_samples([sample(60, 8)], 60 - KEPT_S)
        assert store.samples("main", 0) == (sample(0, 4), sample(60, 8))
        assert store.samples("b", 0) == (sample(0, 8, pool="b"),)
        assert store.samples("main", 60) == (sample(60, 8),)
        store.add_samples([sample(KEPT_S + 30)], 30)
        assert store.samples("main", 0) == (sample(60, 8), sample(KEPT_S + 30))
        assert store.samples("b", 0) == ()
