"""The live clusters of backends: watched from the moment a backend appears, each without delaying the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.config.configuration import Backend
from coterie.errors import CoterieError, Unavailable
from coterie.planning.inputs import with_topologies
from coterie.sources import Snapshot

if TYPE_CHECKING:
    from coterie.sources.watched_cluster import WatchedCluster

_log = logging.getLogger("coterie.clusters")
_log.addHandler(logging.NullHandler())

# The reason why a cluster is not known before the first try has ended.
CONNECTING = "connecting"
# How long to wait before a cluster that cannot be reached is tried again, at first and at most; it doubles each time.
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
# How often a cluster in which nothing changes is asked whether its watches still run.
_CHECK_S = 5.0
# The shortest time between two snapshots of a cluster, since pods come and go all the time.
_PACE_S = 1.0


@dataclass(eq=False)
class _Connection:
    """The connection to one cluster, and the last snapshot of it; `failure` is that of the last try."""

    backend: Backend
    closed: threading.Event = field(default_factory=threading.Event)
    changed: threading.Event = field(default_factory=threading.Event)
    watched: WatchedCluster | None = None
    failure: str = CONNECTING
    snapshot: Snapshot | None = None

    @property
    def problem(self) -> str:
        """The reason why the snapshot is missing or out of date, empty where it is neither."""
        watched = self.watched
        error = watched.error if watched is not None else None
        return str(error) if error is not None else self.failure

    def close(self) -> None:
        """Let the thread of the connection end."""
        self.closed.set()
        self.changed.set()


def unreached_words(backend: str, problem: str) -> str:
    """Return the sentence about a cluster that is not known, or not as it is now, for one of the `problems`."""
    if problem == CONNECTING:
        return f'the service is connecting to the cluster of backend "{backend}"'
    return f'the cluster of backend "{backend}" cannot be reached: {problem}'


class LiveClusters:
    """Snapshots of the clusters of backends; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Connection] = {}
        self._told: dict[str, str] = {}
        self._given: dict[str, Snapshot] = {}

    def follow(self, backends: Iterable[Backend]) -> None:
        """Watch the clusters of exactly these backends."""
        wanted = {backend.name: backend for backend in backends}
        with self._lock:
            for name, one in list(self._open.items()):
                if wanted.get(name) != one.backend:
                    one.close()
                    del self._open[name]
            new = [_Connection(backend) for name, backend in wanted.items() if name not in self._open]
            self._open |= {one.backend.name: one for one in new}
        for one in new:
            name = f"coterie-cluster {one.backend.name}"
            threading.Thread(target=_follow, args=(one,), name=name, daemon=True).start()

    def snapshots(self) -> dict[str, Snapshot]:
        """Return the last snapshots, without those of clusters that were never reached; never waits for a cluster."""
        self._given = self._snapshots()
        return dict(self._given)

    def changed(self) -> bool:
        """Return whether `snapshots` or `problems` would return anything new."""
        found = self._snapshots()
        return (
            found.keys() != self._given.keys()
            or any(self._given[name] is not one for name, one in found.items())
            or self._problems() != self._told
        )

    def problems(self) -> dict[str, str]:
        """Return why clusters are not known, or not as they are now, by backend; `CONNECTING` before the first try."""
        self._told = self._problems()
        return dict(self._told)

    def _snapshots(self) -> dict[str, Snapshot]:
        found = ((name, one.snapshot) for name, one in list(self._open.items()))
        return {name: snapshot for name, snapshot in found if snapshot is not None}

    def _problems(self) -> dict[str, str]:
        found = ((name, one.problem) for name, one in list(self._open.items()))
        return {name: problem for name, problem in found if problem}

    def referring_objects(self, backend: str) -> list[dict[str, Any]]:
        """Return the PodCliqueSets and graph deployments of a cluster; none for a backend without a live cluster.

        Raises `CoterieError` where the cluster cannot be read.
        """
        one = self._open.get(backend)
        if one is None:
            return []
        watched = one.watched
        if watched is None:
            raise Unavailable(one.problem, "Try again later.")
        return watched.referring_objects()

    def close(self) -> None:
        """Stop watching."""
        self.follow(())


def _follow(one: _Connection) -> None:
    """Open a cluster, as often as it takes; then take snapshots of it whenever it changes, until it is to be closed.

    All calls are made here, so that a cluster which does not answer keeps nobody waiting.
    """
    from coterie.sources.watched_cluster import WatchedCluster  # noqa: PLC0415 - local backends need no client

    wait_s = _PAUSE_S
    while not one.closed.is_set():
        one.changed.clear()
        try:
            if one.watched is None:
                one.watched = WatchedCluster(one.backend.context or "", one.changed.set)
            one.snapshot = with_topologies(one.watched.snapshot(), one.watched.source)
        except CoterieError as error:
            one.failure = str(error)
        except Exception as error:  # noqa: BLE001 - retried, and reported until it succeeds
            _log.exception("unexpected error in the watch of backend %s", one.backend.name)
            one.failure = f"unexpected {type(error).__name__}: {error}"
        else:
            one.failure, wait_s = "", _PAUSE_S
            one.closed.wait(_PACE_S)
            while not one.changed.wait(_CHECK_S) and one.watched.ended is None:
                pass
            continue
        if one.watched is not None and one.watched.ended is not None:
            one.watched.close()
            one.watched = None
        one.closed.wait(wait_s)
        wait_s = min(_LONGEST_PAUSE_S, 2 * wait_s)
    if one.watched is not None:
        one.watched.close()
