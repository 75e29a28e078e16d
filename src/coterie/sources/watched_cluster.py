"""A live cluster that is watched: a `Snapshot` of it at any time, without reading everything again.

Watch threads compare each update with what a snapshot needs of the object: heartbeats and the like change nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from coterie.kube.api import Api, connect
from coterie.kube.cache import CacheChange, ChangeType, Key
from coterie.kube.kinds import GRAPH_DEPLOYMENT, NODE, POD, POD_CLIQUE_SET
from coterie.kube.reads import ObjectQuery
from coterie.kube.retry import RetryLimits
from coterie.kube.watch_thread import WatchThread
from coterie.sources import Snapshot
from coterie.sources.kubernetes_objects import BareNode, BarePod
from coterie.sources.live import PREFIX, UNFINISHED, LiveObjects, level_objects, snapshot_from
from coterie.sources.referring_objects import live_objects

_FIRST_S = 20.0
_PATIENCE = RetryLimits(attempts=2, total_s=5.0)
# How often objects that declare levels, or refer to them, are read again.
_LEVELS_S = 10.0

S = TypeVar("S", BareNode, BarePod)


class WatchedCluster:
    """The nodes and pods of a cluster, kept up to date; `version` grows with each change of a snapshot.

    `source` names it as commands do. `on_change` is called after each change.
    """

    def __init__(self, context: str, on_change: Callable[[], None] = lambda: None) -> None:
        self.version = 0
        self._on_change = on_change
        self.source = f"{PREFIX}{context}"
        self._lock = threading.Lock()
        self._nodes: dict[Key, BareNode] = {}
        self._pods: dict[Key, BarePod] = {}
        self._made: tuple[int, Snapshot] | None = None
        self._levels: tuple[float, LiveObjects] | None = None
        self._referring: tuple[float, list[dict[str, Any]]] | None = None
        with ExitStack() as stack:
            self._api = stack.enter_context(connect(context, patience=_PATIENCE))
            self._watched = (
                _watch(self._api, ObjectQuery(NODE), BareNode, self._noted(self._nodes)),
                _watch(self._api, ObjectQuery(POD, fields=UNFINISHED), BarePod, self._noted(self._pods)),
            )
            for each in self._watched:
                stack.enter_context(each)
            for each in self._watched:
                each.wait_known(_FIRST_S)
            self._stack = stack.pop_all()

    @property
    def ended(self) -> BaseException | None:
        """The error that ended a watch, if any: from then on, snapshots would be out of date for ever."""
        return next((each.failure for each in self._watched if each.failure is not None), None)

    @property
    def error(self) -> BaseException | None:
        """The failure that currently keeps it from being up to date, if any."""
        return self.ended or next((each.error for each in self._watched if each.error is not None), None)

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now, or raise what ended a watch; the same object as long as nothing changed."""
        if (error := self.ended) is not None:
            raise error
        levels = self._level_objects()
        with self._lock:
            version = self.version
            if self._made is not None and self._made[0] == version:
                return self._made[1]
            nodes, pods = list(self._nodes.values()), list(self._pods.values())
        found = snapshot_from(self._api, nodes, pods, levels)
        self._made = version, found
        return found

    def referring_objects(self) -> list[dict[str, Any]]:
        """Return the PodCliqueSets and graph deployments, as they were a moment ago."""
        now = time.monotonic()
        if self._referring is None or now >= self._referring[0] + _LEVELS_S:
            self._referring = now, live_objects(self._api, (POD_CLIQUE_SET, GRAPH_DEPLOYMENT))
        return self._referring[1]

    def close(self) -> None:
        """Stop all watches."""
        self._stack.close()

    def _level_objects(self) -> LiveObjects:
        now = time.monotonic()
        if self._levels is None or now >= self._levels[0]:
            found = level_objects(self._api)
            if self._levels is not None and self._levels[1] != found:
                with self._lock:
                    self.version += 1
            self._levels = now + _LEVELS_S, found
        return self._levels[1]

    def _noted(self, known: dict[Key, S]) -> Callable[[CacheChange[S]], None]:
        def note(change: CacheChange[S]) -> None:
            key, value = change.entry.key, change.entry.value
            with self._lock:
                if change.did is ChangeType.DELETED:
                    known.pop(key, None)
                elif known.get(key) == value:
                    return
                else:
                    known[key] = value
                self.version += 1
            self._on_change()

        return note


def _watch(api: Api, query: ObjectQuery, shape: type[S], on_change: Callable[[CacheChange[S]], None]) -> WatchThread[S]:
    return WatchThread(api, query, shape, on_change=on_change)
