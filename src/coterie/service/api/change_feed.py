"""Waiting for news on behalf of everybody who follows something: one thread for all, none while nobody follows."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from coterie.errors import CoterieError, Unavailable
from coterie.service.service import Service

# How long the thread waits at a time; it ends within this time when the last follower has gone.
SLICE_S = 0.5
# How many may follow at a time.
MOST = 500


class Listener:
    """What one follower waits with, on its own event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    async def news(self, timeout_s: float) -> bool:
        """Wait until something happened since the last call, or the time is over; tell which."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._heard.wait()
        except TimeoutError:
            return False
        self._heard.clear()
        return True

    def wake(self) -> None:
        """Let the follower look; called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._heard.set)


class Followers:
    """All who follow events or logs of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._ears: set[Listener] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the service is about to end, and streams with it."""
        return self._closed

    def __len__(self) -> int:
        return len(self._ears)

    @contextmanager
    def joined(self) -> Iterator[Listener]:
        """Return an ear that hears of everything that happens from now on."""
        ear = Listener()
        with self._lock:
            self._ears.add(ear)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="coterie-followers", daemon=True)
                self._thread.start()
        try:
            yield ear
        finally:
            with self._lock:
                self._ears.discard(ear)

    def need_room(self) -> None:
        """Raise `Unavailable` where as many follow already as the service bears: each keeps a connection."""
        if len(self) >= MOST:
            raise Unavailable(f"{MOST} streams are open already", "Try again later, or ask for a list.")

    def close(self) -> None:
        """End all streams soon. Safe in a signal handler: it takes no lock."""
        self._closed = True

    def _watch(self) -> None:
        seen = 0
        while self._wanted():
            try:
                if self._service.changed(seen, SLICE_S):
                    seen = self._service.last_event()
                    self._tell()
            except CoterieError:  # the store is away; it is asked again
                time.sleep(SLICE_S)

    def _wanted(self) -> bool:
        with self._lock:
            if self._ears and not self.closed:
                return True
            self._thread = None
            ears = tuple(self._ears)
        for ear in ears:
            ear.wake()
        return False

    def _tell(self) -> None:
        with self._lock:
            ears = tuple(self._ears)
        for ear in ears:
            ear.wake()
