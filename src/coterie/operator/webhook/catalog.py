"""The topologies of a cluster as admission needs them, kept up to date from the watches."""

from __future__ import annotations

import threading
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
        for watch in watches:
            watch.subscribe(lambda change, kind=watch.kind: self._changed(kind, change))  # type: ignore[misc] # bound

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

    def _changed(self, kind: ObjectKind, change: CacheChange[Object]) -> None:
        key = (kind.name, change.entry.meta.name)
        with self._lock:
            self._known = None
            if change.did is ChangeType.DELETED:
                self._read.pop(key, None)
                return
            data = {**change.entry.value, "apiVersion": kind.api_version, "kind": kind.name}
            try:
                self._read[key] = topology_of(read_cluster_topology(resource_of(data), None))
            except SpecErrors:
                self._read[key] = None
