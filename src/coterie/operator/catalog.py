"""The levels of a cluster's topologies by name, kept up to date from the watches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from coterie.errors import SpecErrors
from coterie.frontends.admission import KnownTopologies
from coterie.frontends.grove.topology import read_cluster_topology, topology_of
from coterie.frontends.kubernetes.objects import resource_of
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.kinds import ObjectKind
from coterie.operator.watches import SharedWatch
from coterie.topology.levels import Topology

Object = dict[str, Any]


class TopologyCatalog:
    """Levels by the name of their topology; each topology is read once per change, not once per request.

    Of a ClusterTopology and a ClusterTopologyBinding of one name, the first watch's counts.
    """

    def __init__(self, watches: list[SharedWatch]) -> None:
        self._lock = threading.Lock()
        self._watches = watches
        # None stands for a topology that cannot be read.
        self._read: dict[tuple[str, str], Topology | None] = {}
        self._known: KnownTopologies | None = None
        self._subscribers: list[Callable[[str], None]] = []
        for watch in watches:
            watch.subscribe(self._follow(watch.kind), self._present(watch))

    def subscribe(self, on_change: Callable[[str], None]) -> None:
        """Add a subscriber, who gets the name of every topology whose levels changed; only before the watches start."""
        self._subscribers.append(on_change)

    def known(self) -> KnownTopologies:
        """Return all topologies; the list is complete only once every watch has been read."""
        with self._lock:
            if self._known is None:
                found: dict[str, Topology] = {}
                wrong: set[str] = set()
                for watch in self._watches:
                    for (kind, name), topology in self._read.items():
                        if kind == watch.kind.name and name not in found:
                            if topology is None:
                                wrong.add(name)
                            else:
                                found[name] = topology
                self._known = KnownTopologies(found, frozenset(wrong - found.keys()), told=True)
            return self._known

    def _follow(self, kind: ObjectKind) -> Callable[[CacheChange[Object]], None]:
        def changed(change: CacheChange[Object]) -> None:
            key = (kind.name, change.entry.meta.name)
            gone = change.did is ChangeType.DELETED
            topology = (
                None if gone else _read({**change.entry.value, "apiVersion": kind.api_version, "kind": kind.name})
            )
            with self._lock:
                same = (key not in self._read) if gone else (key in self._read and self._read[key] == topology)
                if same:
                    return
                self._known = None
                if gone:
                    del self._read[key]
                else:
                    self._read[key] = topology
            self._tell(key[1])

        return changed

    def _present(self, watch: SharedWatch) -> Callable[[], None]:
        def announced() -> None:
            if watch.present:
                return
            with self._lock:
                gone = [key for key in self._read if key[0] == watch.kind.name]
                for key in gone:
                    del self._read[key]
                self._known = None
            for _, name in gone:
                self._tell(name)

        return announced

    def _tell(self, name: str) -> None:
        for told in self._subscribers:
            told(name)


def _read(data: Object) -> Topology | None:
    try:
        return topology_of(read_cluster_topology(resource_of(data), None))
    except SpecErrors:
        return None
