"""The limit of expensive requests: how many are worked on at a time, how many wait, and how many one caller has."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from coterie.cancellation import POLL_S, check
from coterie.errors import Unavailable


class WorkLimit:
    """The places for one kind of expensive work; its methods may be called from any thread.

    `running` requests are worked on at a time, `waiting` more wait for that, and one caller has at most `each` of both.
    """

    def __init__(self, what: str, *, running: int, waiting: int, each: int) -> None:
        self._what, self._most, self._each = what, running + waiting, each
        self._places = threading.Semaphore(running)
        self._lock = threading.Lock()
        self._callers: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """The number of requests that are worked on or wait."""
        with self._lock:
            return self._callers.total()

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Wait for a place; raise `Unavailable` at once where too many wait already, or too many of this caller.

        Raises `Abandoned` when the caller leaves meanwhile.
        """
        with self._lock:
            if self._callers[caller] >= self._each:
                raise Unavailable(
                    f"{self._each} of your {self._what} are already running or waiting",
                    "Try again when they have been answered.",
                )
            if self._callers.total() >= self._most:
                raise Unavailable(f"too many {self._what} are already waiting", "Try again in a few seconds.")
            self._callers[caller] += 1
        try:
            while not self._places.acquire(timeout=POLL_S):
                check()
            try:
                yield
            finally:
                self._places.release()
        finally:
            with self._lock:
                self._callers[caller] -= 1
                if not self._callers[caller]:
                    del self._callers[caller]
