"""The change feed: one thread waits for events on behalf of all followers, and none while there are no followers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from coterie.errors import CoterieError, Unavailable
from coterie.service.service import Service

# How long the thread waits at a time; it ends within this time when the last follower has left.
SLICE_S = 0.5
# The largest number of concurrent followers.
MOST = 500


class Listener:
    """The wake-up signal of one follower, on its own event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    async def news(self, timeout_s: float) -> bool:
        """Wait for a change since the last call, or for the timeout; return whether there was one."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._heard.wait()
        except TimeoutError:
            return False
        self._heard.clear()
        return True

    def wake(self) -> None:
        """Wake the follower; called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._heard.set)


class _CountedStream(Response):
    """A stream, and what is to be done once it has ended in any way."""

    def __init__(self, stream: StreamingResponse, ended: Callable[[], None]) -> None:
        super().__init__(status_code=stream.status_code, media_type=stream.media_type)
        self._stream, self._ended = stream, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await self._stream(scope, receive, send)
        finally:
            self._ended()


class Followers:
    """The followers of events or logs of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._ears: set[Listener] = set()
        self._thread: threading.Thread | None = None
        self._streams = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the service is shutting down, and its streams with it."""
        return self._closed

    def __len__(self) -> int:
        return len(self._ears)

    @contextmanager
    def joined(self) -> Iterator[Listener]:
        """Yield a signal that is woken by every change from now on."""
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

    def streamed(self, response: StreamingResponse) -> Response:
        """Return a response that counts as a stream until it ends; raise `Unavailable` at the limit of streams."""
        with self._lock:
            if self._streams >= MOST:
                raise Unavailable(f"{MOST} streams are open already", "Try again later, or ask for a list.")
            self._streams += 1
        return _CountedStream(response, self._leave)

    def _leave(self) -> None:
        with self._lock:
            self._streams -= 1

    def close(self) -> None:
        """End all streams soon; safe in a signal handler, since it takes no lock."""
        self._closed = True

    def _watch(self) -> None:
        seen = 0
        while self._wanted():
            try:
                if self._service.changed(seen, SLICE_S):
                    seen = self._service.last_event()
                    self._tell()
            except CoterieError:  # the store is unavailable; it is asked again
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
