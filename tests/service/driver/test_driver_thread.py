"""A driver on its own thread."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import cast

import pytest

from coterie.backends.base.driver import Driver, News
from coterie.errors import Unavailable
from coterie.service.driver.connections import driver_thread
from coterie.service.driver.connections.driver_thread import DriverThread
from tests.eventually import eventually


class BusyDriver:
    """A driver that always has observations, and fails to tell them at first."""

    def __init__(self) -> None:
        self.waits = 0
        self.waits_at_news: list[int] = []

    def wait(self, _: float) -> bool:
        """Return at once."""
        self.waits += 1
        return True

    def news(self) -> Iterator[tuple[str, News]]:
        """Fail twice."""
        self.waits_at_news.append(self.waits)
        if len(self.waits_at_news) < 3:
            raise Unavailable("not now")
        return iter(())

    def close(self) -> None:
        """Do nothing."""


class RefusingDriver:
    """A driver that cannot reconcile pools, and notes when it was asked to."""

    def __init__(self) -> None:
        self.tried: list[float] = []
        self.pools: list[object] = []

    def wait(self, timeout_s: float) -> bool:
        """Wait."""
        time.sleep(timeout_s)
        return False

    def sync(self, pools: object) -> None:
        """Fail."""
        self.tried.append(time.monotonic())
        self.pools.append(pools)
        raise Unavailable("not now")

    def close(self) -> None:
        """Do nothing."""


class ClosedBackend:
    """A backend that cannot be opened, and notes when it was tried."""

    def __init__(self) -> None:
        self.tried: list[float] = []

    def open(self) -> Driver:
        """Fail."""
        self.tried.append(time.monotonic())
        raise Unavailable("not there")


def test_a_backend_that_cannot_be_opened_is_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_thread, "_PAUSE_S", 0.05)
    monkeypatch.setattr(driver_thread, "_LONGEST_PAUSE_S", 0.2)
    backend = ClosedBackend()
    thread = DriverThread(backend.open, lambda: None)
    eventually(lambda: len(backend.tried) >= 5)
    thread.close()
    waits = [later - sooner for sooner, later in itertools.pairwise(backend.tried)]
    assert all(wait >= least for wait, least in zip(waits, (0.05, 0.1, 0.2, 0.2), strict=False)), waits


def test_pools_that_cannot_be_reconciled_are_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_thread, "_PAUSE_S", 0.05)
    driver = RefusingDriver()
    thread = DriverThread(lambda: cast("Driver", driver), lambda: None)
    thread.sync(())
    eventually(lambda: len(driver.tried) >= 4)
    thread.close()
    waits = [later - sooner for sooner, later in itertools.pairwise(driver.tried)]
    assert all(wait >= least for wait, least in zip(waits, (0.05, 0.1, 0.2), strict=False)), waits


def test_corrected_pools_are_reconciled_at_once_and_unchanged_ones_when_their_turn_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Longer than the test may take.
    monkeypatch.setattr(driver_thread, "_PAUSE_S", 600.0)
    monkeypatch.setattr(driver_thread, "_LONGEST_PAUSE_S", 600.0)
    driver = RefusingDriver()
    thread = DriverThread(lambda: cast("Driver", driver), lambda: None)
    thread.sync(["wrong"])
    eventually(lambda: len(driver.tried) == 1)
    # The failure is told once it is noted, and only then there is something to wait for.
    eventually(lambda: _failure(thread) == "not now")
    thread.sync(["wrong"])
    thread.sync(["corrected"])
    eventually(lambda: driver.pools == [["wrong"], ["corrected"]])
    thread.close()


def _failure(thread: DriverThread) -> str:
    try:
        list(thread.news())
    except Unavailable as error:
        return str(error)
    return ""


def test_a_driver_is_not_asked_again_before_its_observations_are_collected() -> None:
    driver = BusyDriver()
    thread = DriverThread(lambda: cast("Driver", driver), lambda: None)
    eventually(lambda: len(driver.waits_at_news) >= 4)
    thread.close()
    assert driver.waits_at_news[:4] == [1, 1, 1, 2]
