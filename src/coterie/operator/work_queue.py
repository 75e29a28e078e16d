"""Keys that wait for a reconciliation.

A key waits at most once and is handed to one worker at a time. A key that is added while a worker has it is handed out
again afterwards, so that no change is missed. A failed key returns after a growing, jittered delay.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from coterie.kube.retry import backoff

K = TypeVar("K", bound=Hashable)

FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 300.0


class WorkQueue(Generic[K]):
    """A queue of distinct keys, safe to use from several threads."""

    def __init__(
        self, *, longest_delay_s: float = LONGEST_DELAY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._longest = longest_delay_s
        self._ready: dict[K, None] = {}
        self._delayed: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0
        self._taken: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        with self._changed:
            return len(self._ready) + len(self._delayed)

    @property
    def taken(self) -> int:
        """The number of keys that workers have."""
        with self._changed:
            return len(self._taken)

    def add(self, key: K) -> None:
        """Hand out a key as soon as a worker is free."""
        with self._changed:
            if self._closed:
                return
            if key in self._taken:
                self._again.add(key)
                return
            self._delayed.pop(key, None)
            self._ready.setdefault(key)
            self._changed.notify()

    def add_after(self, key: K, delay_s: float) -> None:
        """Hand out a key after a delay, or earlier if it is added earlier."""
        with self._changed:
            due = self._clock() + delay_s
            if self._closed or key in self._ready or self._delayed.get(key, due + 1) <= due:
                return
            self._delayed[key] = due
            self._order += 1
            heapq.heappush(self._heap, (due, self._order, key))
            self._changed.notify()

    def take(self, timeout_s: float | None = None) -> K | None:
        """Return the next key, which the caller then must finish; None when the queue is closed or the time is up."""
        end = None if timeout_s is None else self._clock() + timeout_s
        with self._changed:
            while not self._closed:
                self._promote()
                if self._ready:
                    key = next(iter(self._ready))
                    del self._ready[key]
                    self._taken.add(key)
                    return key
                waits = [
                    due - self._clock() for due in (end, self._heap[0][0] if self._heap else None) if due is not None
                ]
                if end is not None and self._clock() >= end:
                    return None
                self._changed.wait(max(0.0, min(waits)) if waits else None)
        return None

    def done(self, key: K, *, after_s: float | None = None) -> None:
        """Finish a key after success: its failures are forgotten; with `after_s` it returns then."""
        with self._changed:
            self._failures.pop(key, None)
        self._finish(key, after_s)

    def failed(self, key: K) -> float:
        """Finish a key after a failure, and return the delay after which it is handed out again."""
        with self._changed:
            count = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff(count, FIRST_DELAY_S, self._longest)
        self._finish(key, delay)
        return delay

    def close(self) -> None:
        """Release every waiting worker; nothing is handed out from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _finish(self, key: K, after_s: float | None) -> None:
        with self._changed:
            self._taken.discard(key)
            again = key in self._again
            self._again.discard(key)
        if again:
            self.add(key)
        elif after_s is not None:
            self.add_after(key, after_s)

    def _promote(self) -> None:
        """Move the delayed keys that are due to the ready ones; an entry that was replaced or added is skipped."""
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._delayed.get(key) == due:
                del self._delayed[key]
                if key in self._taken:
                    self._again.add(key)
                else:
                    self._ready.setdefault(key)
