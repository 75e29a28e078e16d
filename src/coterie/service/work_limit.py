"""The limit of expensive requests: how many are worked on at a time, how many wait, and how many one caller has."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coterie.cancellation import POLL_S, check
from coterie.errors import Unavailable


class WorkLimit:
    """The places for one kind of expensive work; its methods may be called from any thread.

    `running` requests are worked on at a time, `waiting` more wait for that, and one caller has at most `each` of both.
    """

    def __init__(self, what: str, *, running: int, waiting: int, each: int) -> None:
        self._what, self._most, self._each = what, running + waiting, each
        self._free = running
        self._waiting: deque[threading.Event] = deque()
        self._running: set[threading.Event] = set()
        self._lock = threading.Lock()
        self._callers: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """The number of requests that are worked on or wait."""
        with self._lock:
            return self._callers.total()

    @contextmanager
    def place(self, caller: str) -> Iterator[Callable[[], None]]:
        """Wait for a place, in the order of arrival; raise `Unavailable` at once where too many wait already.

        The same holds for too many of one caller. Raises `Abandoned` when the caller leaves meanwhile. Once the work is
        done and only something else is waited for, a call of what it yields lets the next one begin.
        """
        turn = threading.Event()
        with self._lock:
            if self._callers[caller] >= self._each:
                raise Unavailable(
                    f"{self._each} of your {self._what} are already running or waiting",
                    "Try again when they have been answered.",
                )
            if self._callers.total() >= self._most:
                raise Unavailable(f"too many {self._what} are already waiting", "Try again in a few seconds.")
            self._callers[caller] += 1
            self._waiting.append(turn)
            self._admit()
        try:
            while not turn.wait(POLL_S):
                check()
            yield lambda: self._leave(turn)
        finally:
            self._leave(turn)
            with self._lock:
                self._callers[caller] -= 1
                if not self._callers[caller]:
                    del self._callers[caller]

    def _leave(self, turn: threading.Event) -> None:
        """Give a place back, or stop waiting for it; once."""
        with self._lock:
            if turn in self._running:
                self._running.remove(turn)
                self._free += 1
            elif turn in self._waiting:
                self._waiting.remove(turn)
            self._admit()

    def _admit(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            turn = self._waiting.popleft()
            self._running.add(turn)
            turn.set()
