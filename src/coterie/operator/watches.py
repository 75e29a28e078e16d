"""One watch per kind, shared by all controllers.

A kind that the cluster lacks is no failure: it is asked for again from time to time, and its absence is part of what
controllers read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import structlog

from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, ChangeType, Key
from coterie.kube.errors import MissingKind
from coterie.kube.kinds import ObjectKind
from coterie.kube.reads import ObjectQuery
from coterie.kube.retry import jittered
from coterie.kube.watch import Batch, Follower, WatchTiming

Object = dict[str, Any]
OnChange = Callable[[CacheChange[Object]], None]

# The time between two questions for a kind that the cluster lacks.
ABSENT_S = 5.0

_log = structlog.get_logger("coterie.operator")


class SharedWatch:
    """The objects of a kind, kept up to date in a thread of its own.

    Subscribers are called in that thread, after `objects` includes the change; `on_presence` when the kind appears or
    vanishes.
    """

    def __init__(
        self, api: Api, kind: ObjectKind, *, pace: WatchTiming | None = None, absent_s: float = ABSENT_S
    ) -> None:
        self.kind = kind
        self._api, self._pace, self._absent_s = api, pace, absent_s
        self._objects: dict[Key, Object] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._settled = threading.Event()
        self._subscribers: list[OnChange] = []
        self._on_presence: list[Callable[[], None]] = []
        self._follower: Follower[Object] | None = None
        self.present = False
        self.error: CoterieError | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind.plural}", daemon=True)

    def subscribe(self, on_change: OnChange, on_presence: Callable[[], None] = lambda: None) -> None:
        """Add a subscriber; only before the start."""
        self._subscribers.append(on_change)
        self._on_presence.append(on_presence)

    def start(self) -> None:
        """Start the watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the watch, and return when its thread has ended or hangs."""
        self._stop.set()
        if (follower := self._follower) is not None:
            follower.stop()
        if self._thread.is_alive():
            self._thread.join(10.0)

    @property
    def running(self) -> bool:
        """Whether the watch runs; only a defect ends it early."""
        return self._thread.is_alive()

    @property
    def settled(self) -> bool:
        """Whether everything was read once, or the kind was found absent."""
        return self._settled.is_set()

    def wait_settled(self, timeout_s: float) -> bool:
        """Return whether everything was read, or found absent, within a time."""
        return self._settled.wait(timeout_s)

    def objects(self) -> dict[Key, Object] | None:
        """Return the objects by namespace and name; None where the cluster lacks the kind."""
        with self._lock:
            return dict(self._objects) if self.present else None

    def get(self, name: str, namespace: str = "") -> Object | None:
        """Return one object, or None."""
        with self._lock:
            return self._objects.get((namespace, name)) if self.present else None

    def _run(self) -> None:
        while not self._stop.is_set():
            self._follower = Follower(
                self._api, ObjectQuery(self.kind), Object, pace=self._pace, stop=self._stop, on_error=self._failed
            )
            try:
                for batch in self._follower.batches():
                    self._take(batch)
            except MissingKind:
                self._leave()
                self._settled.set()
                self._stop.wait(jittered(self._absent_s))
            except CoterieError as error:
                self._failed(error)
                self._stop.wait(jittered(self._absent_s))

    def _failed(self, error: CoterieError | None) -> None:
        if error is not None and (self.error is None or str(error) != str(self.error)):
            _log.warning("watch interrupted", kind=self.kind.name, error=str(error))
        self.error = error
        if isinstance(error, MissingKind):
            self._leave()

    def _leave(self) -> None:
        """Forget the objects of a kind that is gone."""
        with self._lock:
            was, self.present = self.present, False
            self._objects.clear()
        if was:
            self._announce("kind removed")

    def _take(self, batch: Batch[Object]) -> None:
        with self._lock:
            was, self.present = self.present, True
            for change in batch.changes:
                if change.did is ChangeType.DELETED:
                    self._objects.pop(change.entry.key, None)
                else:
                    self._objects[change.entry.key] = change.entry.value
        self.error = None
        if not was:
            self._announce("kind watched")
        for change in batch.changes:
            for subscriber in self._subscribers:
                subscriber(change)
        if batch.whole:
            self._settled.set()

    def _announce(self, event: str) -> None:
        _log.info(event, kind=self.kind.name, api_version=self.kind.api_version)
        for told in self._on_presence:
            told()
