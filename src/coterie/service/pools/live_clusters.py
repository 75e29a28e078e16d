"""The live clusters of backends: watched from the moment a backend appears, each without delaying the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.config.configuration import Backend
from coterie.errors import CoterieError, Unavailable
from coterie.planning.inputs import with_topologies
from coterie.sources import Snapshot

if TYPE_CHECKING:
    from coterie.sources.watched_cluster import WatchedCluster

# How long to wait before a cluster that cannot be reached is tried again, at first and at most; it doubles each time.
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
# The shortest time between two snapshots of a cluster, since pods come and go all the time.
_PACE_S = 1.0


@dataclass(eq=False)
class _Connection:
    """The connection to one cluster, and the last snapshot of it."""

    backend: Backend
    closed: threading.Event = field(default_factory=threading.Event)
    watched: WatchedCluster | None = None
    problem: str = "it is not connected yet"
    last: tuple[float, int, Snapshot] | None = None


class LiveClusters:
    """Snapshots of the clusters of backends; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Connection] = {}
        self._told: dict[str, str] = {}

    def follow(self, backends: Iterable[Backend]) -> None:
        """Watch the clusters of exactly these backends."""
        wanted = {backend.name: backend for backend in backends}
        with self._lock:
            for name, one in list(self._open.items()):
                if wanted.get(name) != one.backend:
                    one.closed.set()
                    del self._open[name]
            new = [_Connection(backend) for name, backend in wanted.items() if name not in self._open]
            self._open |= {one.backend.name: one for one in new}
        for one in new:
            name = f"coterie-cluster {one.backend.name}"
            threading.Thread(target=_connect, args=(one,), name=name, daemon=True).start()

    def snapshots(self) -> dict[str, Snapshot]:
        """Return the current snapshots, without those of clusters that were never reached."""
        found = {}
        for name, one in list(self._open.items()):
            try:
                snapshot = _snapshot(one)
            except CoterieError as error:
                one.problem = str(error)
                snapshot = one.last[2] if one.last else None
            if snapshot is not None:
                found[name] = snapshot
        return found

    def changed(self) -> bool:
        """Return whether `snapshots` or `problems` would return anything new."""
        now = time.monotonic()
        connections = list(self._open.items())
        if {name: one.problem for name, one in connections if one.watched is None} != self._told:
            return True
        return any(
            one.watched is not None
            and (one.last is None or (one.watched.version != one.last[1] and now >= one.last[0] + _PACE_S))
            for _, one in connections
        )

    def problems(self) -> dict[str, str]:
        """Return why clusters that were never reached are not known, by backend."""
        found = {name: one.problem for name, one in list(self._open.items()) if one.watched is None}
        self._told = found
        return found

    def referring_objects(self, backend: str) -> list[dict[str, Any]]:
        """Return the PodCliqueSets and graph deployments of a cluster; none for a backend without a live cluster.

        Raises `CoterieError` where the cluster cannot be read.
        """
        one = self._open.get(backend)
        if one is None:
            return []
        if one.watched is None:
            raise Unavailable(one.problem, "Try again later.")
        return one.watched.referring_objects()

    def close(self) -> None:
        """Stop watching."""
        self.follow(())


def _connect(one: _Connection) -> None:
    """Open a cluster, as often as it takes; then wait until it is to be closed."""
    from coterie.sources.watched_cluster import WatchedCluster  # noqa: PLC0415 - local backends need no client

    wait_s = _PAUSE_S
    while not one.closed.is_set():
        try:
            one.watched = WatchedCluster(one.backend.context or "")
        except CoterieError as error:
            one.problem = str(error)
            one.closed.wait(wait_s)
            wait_s = min(_LONGEST_PAUSE_S, 2 * wait_s)
            continue
        one.closed.wait()
        one.watched.close()


def _snapshot(one: _Connection) -> Snapshot | None:
    watched, last = one.watched, one.last
    if watched is None:
        return None
    now = time.monotonic()
    if last is not None and (watched.version == last[1] or now < last[0] + _PACE_S):
        return last[2]
    version = watched.version
    found = with_topologies(watched.snapshot(), watched.source)
    one.last = now, version, found
    return found
