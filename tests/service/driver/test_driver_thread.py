"""A driver on its own thread."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest

from coterie.backends.base.driver import Driver, News
from coterie.errors import Unavailable
from coterie.lifecycle import Stopped
from coterie.service.driver.connections import driver_thread
from coterie.service.driver.connections.driver_thread import DriverThread
from tests.eventually import PATIENCE_S, eventually


class BusyDriver:
    """A driver that always has observations, and fails to tell them at first."""

    problems = ()

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


class TroubledDriver:
    """A driver with problems, whose observations a test gives it one by one."""

    def __init__(self, *problems: str) -> None:
        self.problems = list(problems)
        self.coming: queue.SimpleQueue[News] = queue.SimpleQueue()

    def wait(self, _: float) -> bool:
        """Return at once."""
        return True

    def news(self) -> Iterator[tuple[str, News]]:
        """Wait for the next one."""
        with contextlib.suppress(queue.Empty):
            yield "w-1", self.coming.get(timeout=0.01)

    def close(self) -> None:
        """Do nothing."""


def test_problems_are_passed_on_and_delay_no_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than the test may take: a failed collection would be repeated only then.
    monkeypatch.setattr(driver_thread, "_PAUSE_S", 600.0)
    driver, poked = TroubledDriver("a folder cannot be removed"), threading.Event()
    thread = DriverThread(lambda: cast("Driver", driver), poked.set)
    assert poked.wait(PATIENCE_S)
    eventually(lambda: thread.problems == ("a folder cannot be removed",))
    told = list[tuple[str, News]]()

    def collected() -> int:
        told.extend(thread.news())
        return len(told)

    for number in range(5):
        driver.coming.put(Stopped("t", number))
        eventually(lambda: collected() == number + 1)  # noqa: B023 - called at once
    assert told == [("w-1", Stopped("t", number)) for number in range(5)]
    poked.clear()
    driver.problems.clear()
    assert poked.wait(PATIENCE_S)
    eventually(lambda: thread.problems == ())
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
