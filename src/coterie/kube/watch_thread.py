"""A watch in its own thread, with the current objects available at any time and a callback for changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, CacheEntry, ChangeType, Key
from coterie.kube.reads import ObjectQuery
from coterie.kube.watch import Batch, Follower, WatchTiming

T = TypeVar("T")


class WatchThread(Generic[T]):
    """The objects of a query, kept up to date; used as a context manager.

    `on_change` is called in the watch thread, one change at a time and in order, after `entries` includes the change.
    If it raises, the watch ends, and the next call raises that error.
    """

    def __init__(
        self,
        api: Api,
        query: ObjectQuery,
        shape: type[T],
        *,
        on_change: Callable[[CacheChange[T]], None] | None = None,
        pace: WatchTiming | None = None,
    ) -> None:
        self._title = query.kind.plural
        self._on_change = on_change or _nothing
        self._entries: dict[Key, CacheEntry[T]] = {}
        self._lock = threading.Lock()
        self._known = threading.Event()
        self._failure: BaseException | None = None
        self._error: CoterieError | None = None
        self._follower = Follower(api, query, shape, pace=pace, on_error=self._failed)
        self._thread = threading.Thread(target=self._run, name=f"watch-{self._title}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Stop the watch; return when its thread has ended, or after `timeout_s` if it hangs in a connection."""
        self._follower.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def wait_known(self, timeout_s: float) -> None:
        """Return once all objects have been read; raise the error that prevents it, or Unavailable on timeout."""
        self._known.wait(timeout_s)
        self._check()
        if not self._known.is_set():
            message = f"{self._title} were not read within {timeout_s:g} s"
            raise self._error or Unavailable(message, "Try again; the cluster may be busy.")

    @property
    def error(self) -> CoterieError | None:
        """The failure that currently keeps the watch from being up to date, if any."""
        return self._error

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the watch, if any."""
        return self._failure

    @property
    def running(self) -> bool:
        """Whether the watch is running."""
        return self._thread.is_alive()

    def entries(self) -> dict[Key, CacheEntry[T]]:
        """Return the objects as currently known; raise the error that ended the watch, if any."""
        self._check()
        with self._lock:
            return dict(self._entries)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _failed(self, error: CoterieError | None) -> None:
        self._error = error

    def _run(self) -> None:
        try:
            for batch in self._follower.batches():
                self._take(batch)
        except BaseException as failure:  # noqa: BLE001 - a thread has nobody to raise to; the next one who asks gets it
            self._failure = failure
        finally:
            self._known.set()

    def _take(self, batch: Batch[T]) -> None:
        with self._lock:
            for change in batch.changes:
                if change.did is ChangeType.DELETED:
                    del self._entries[change.entry.key]
                else:
                    self._entries[change.entry.key] = change.entry
        for change in batch.changes:
            self._on_change(change)
        if batch.whole:
            self._error = None
            self._known.set()


def _nothing(_: object) -> None:
    """Ignore a change."""
