"""A lock of threads that an interrupt cannot leave locked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ThreadLock:
    """A lock that a thread may take several times.

    Ctrl-C raises an exception in the main thread at any moment, also between the acquisition of a lock and the block
    that would release it. So the acquisition is inside that block, which releases whatever is held.
    """

    def __init__(self) -> None:
        self._lock, self._mine = threading.RLock(), threading.local()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[bool]:
        """Hold the lock in the block; yield whether it was free in time."""
        if getattr(self._mine, "held", False):
            yield True
            return
        try:
            self._mine.held = self._lock.acquire(timeout=timeout_s)
            yield self._mine.held
        finally:
            # No interrupt is handled before the call that releases it.
            self._mine.held = False
            try:  # noqa: SIM105 - an interrupt could come inside of `suppress`
                self._lock.release()
            except RuntimeError:
                pass  # it was not acquired
