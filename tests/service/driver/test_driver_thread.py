"""A driver on its own thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from coterie.backends.base.driver import Driver, News
from coterie.errors import Unavailable
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


def test_a_driver_is_not_asked_again_before_its_observations_are_collected() -> None:
    driver = BusyDriver()
    thread = DriverThread(lambda: cast("Driver", driver), lambda: None)
    eventually(lambda: len(driver.waits_at_news) >= 4)
    thread.close()
    assert driver.waits_at_news[:4] == [1, 1, 1, 2]
