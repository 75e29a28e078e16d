"""An endless list and watch.

A watch ends for many reasons: its time is up, the server restarts, a connection drops in the middle of a line. It is
resumed at the last version that was read completely. When that version has expired (410), when resuming fails
repeatedly, and once per period, everything is listed again and compared, so that missed changes are reported as well. A
consumer of the changes therefore always arrives at the result of a list.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import httpx2
import msgspec

from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api, failure_of
from coterie.kube.cache import Cache, CacheChange, CacheEntry
from coterie.kube.errors import Expired, RequestDescription
from coterie.kube.reads import ObjectQuery, list_all
from coterie.kube.retry import Transient, backoff, jittered
from coterie.kube.wire import ApiStatus, read_line, read_meta, read_status, read_version

T = TypeVar("T")

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_RELIST_AFTER = 3


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """The timing of a watch; a connection without data for slightly more than `watch_s` is dropped."""

    watch_s: float = 120.0
    resync_s: float = 900.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 30.0
    page: int = 500


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Changes that belong together; after a batch with `whole`, the consumer has the complete state."""

    changes: tuple[CacheChange[T], ...]
    whole: bool = False


class Follower(Generic[T]):
    """A list and watch of the objects of a query; one thread runs it, any thread may stop it."""

    def __init__(
        self,
        api: Api,
        query: ObjectQuery,
        shape: type[T],
        *,
        pace: WatchTiming | None = None,
        stop: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_error: Callable[[CoterieError | None], None] = lambda _: None,
    ) -> None:
        self._api = api
        self._query = query
        self._pace = pace or WatchTiming()
        self._stop = stop or threading.Event()
        self._clock = clock
        self._on_error = on_error
        self._decoder = msgspec.json.Decoder(shape)
        self._cache: Cache[T] = Cache()
        self._response: httpx2.Response | None = None
        self._failures = 0
        self._ended_at_once = False
        self._established = False
        self._resync_at = 0.0

    def stop(self) -> None:
        """Stop the watch at once, even while it waits for the server."""
        self._stop.set()
        response = self._response
        if response is not None:
            _wake(response)

    def batches(self) -> Iterator[Batch[T]]:
        """Yield batches of changes, the first with all existing objects.

        Temporary failures are retried. A permanent one, such as a missing kind or permission, is raised before the
        first watch is established and retried afterwards, since a cluster that once worked may recover.
        """
        stale = True
        while not self._stop.is_set():
            try:
                if stale or self._clock() >= self._resync_at:
                    yield self._list()
                    stale = False
                yield from self._watch()
                continue
            except Expired:
                stale = True
                # The first watch starts at once: a delay would only make the listed version older.
                if self._failures == 0:
                    self._failures += 1
                    continue
                self._pause(None)
            except Transient as failure:
                self._pause(failure)
            except CoterieError as error:
                if not self._established:
                    raise
                self._pause(Transient(error))
            stale = stale or self._failures % _RELIST_AFTER == 0

    def _list(self) -> Batch[T]:
        listing = list_all(self._api, self._query, msgspec.Raw, send=self._api.attempt, page=self._pace.page)
        try:
            entries = [self._entry(raw) for raw in listing.items]
        except _BROKEN as error:
            raise self._unreadable(error) from None
        changes = self._cache.replace(entries, listing.version)
        self._resync_at = self._clock() + self._pace.resync_s
        return Batch(tuple(changes), whole=True)

    def _watch(self) -> Iterator[Batch[T]]:
        """Watch once from the known version, until the server or a failure ends it."""
        begun = self._clock()
        seconds = max(1, round(min(self._pace.watch_s, self._resync_at - begun)))
        params = {
            **self._query.params(),
            "resourceVersion": self._cache.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        heard = False
        with self._api.stream(self._call, params, quiet_s=seconds + 10) as response:
            self._response = response
            try:
                # Either stop() sees the response and closes it, or it was called before and is noticed here.
                if self._stop.is_set():
                    return
                self._established = True
                if self._failures and not self._ended_at_once:
                    self._on_error(None)  # a quiet cluster may send the first line a minute later
                for line in lines(response.iter_bytes()):
                    batch = self._read(line)
                    heard = True
                    self._well()
                    if batch.changes:
                        yield batch
                    if self._stop.is_set():
                        return
            finally:
                self._response = None
        if heard or self._clock() - begun >= min(1.0, seconds / 2):
            self._well()
        elif not self._stop.is_set():
            self._ended_at_once = True
            message = f"{self._api.server} ends watches of {self._call.title()} at once"
            raise Transient(Unavailable(message, "It will be retried; a proxy may not allow long responses."))

    def _read(self, data: bytes) -> Batch[T]:
        try:
            line = read_line(data)
            if line.type == "ERROR":
                raise self._refused(bytes(line.object))
            if line.type == "BOOKMARK":
                self._cache.version = read_version(line.object)
                return Batch(())
            entry = self._entry(line.object)
        except _BROKEN as error:
            raise Transient(self._unreadable(error)) from None
        change = self._cache.remove if line.type == "DELETED" else self._cache.put
        changes = change(entry)
        self._cache.version = entry.meta.resource_version
        return Batch(tuple(changes))

    def _entry(self, raw: msgspec.Raw) -> CacheEntry[T]:
        return CacheEntry(read_meta(raw), self._decoder.decode(raw))

    def _refused(self, body: bytes) -> CoterieError | Transient:
        status = read_status(body) or ApiStatus()
        return failure_of(self._call, status.code or 500, {}, body)

    def _unreadable(self, error: Exception) -> CoterieError:
        message = f"{self._api.server} sent {self._call.title()} that cannot be read: {error}"
        return Unavailable(message, "It will be retried; check the version of the cluster.")

    @cached_property
    def _call(self) -> RequestDescription:
        return self._api.call_of("watch", self._query.kind, namespace=self._query.namespace)

    def _well(self) -> None:
        self._ended_at_once = False
        if self._failures:
            self._failures = 0
            self._on_error(None)

    def _pause(self, failure: Transient | None) -> None:
        """Wait before the next attempt: the delay the server requests, or a growing backoff; a stop ends it."""
        if self._stop.is_set():
            return
        self._failures += 1
        wait = backoff(self._failures, self._pace.first_wait_s, self._pace.longest_wait_s)
        if failure is not None:
            self._on_error(failure.error)
            wait = jittered(min(failure.after_s, self._pace.longest_wait_s)) if failure.after_s is not None else wait
        self._stop.wait(wait)


def lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the complete lines of a stream; an incomplete last line of a broken connection is dropped."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
        yield from (line for line in whole if line.strip())


def _wake(response: httpx2.Response) -> None:
    """Make a thread that reads a response see its end."""
    stream = response.extensions.get("network_stream")
    found = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(found, socket.socket):
        try:
            # Not the method of a TLS socket, which would close the session while the reader uses it.
            socket.socket.shutdown(found, socket.SHUT_RDWR)
        except OSError:
            return  # the server closed it first
