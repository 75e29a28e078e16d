"""The levels of a cluster's topologies by name: kept up to date from the watches, or as the API has them now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from coterie.errors import CoterieError, SpecErrors, Unavailable
from coterie.frontends.admission import KnownTopologies
from coterie.frontends.grove.topology import read_cluster_topology, topology_of
from coterie.frontends.kubernetes.objects import is_subdomain, resource_of
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.errors import MissingKind
from coterie.kube.kinds import ObjectKind
from coterie.kube.reads import find
from coterie.operator.watches import SharedWatch
from coterie.topology.levels import Topology

Object = dict[str, Any]

# No further topology is read after this time: an API server waits only five seconds for a webhook.
_LOOKUPS_S = 2.5


class TopologyLookup(Mapping[str, Topology]):
    """Topologies by name; `asked` are the names that were asked for, and one that could not be read is Unavailable."""

    def __init__(self, found: Mapping[str, Topology], unread: Mapping[str, str] | None = None) -> None:
        self._found, self._unread = found, unread or {}
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Topology:
        self.asked.add(name)
        if why := self._unread.get(name):
            raise Unavailable(why, "Try again later.")
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class TopologyCatalog:
    """Levels by the name of their topology; each topology is read once per change, not once per request.

    Of a ClusterTopology and a ClusterTopologyBinding of one name, the first watch's counts. `api` is asked for
    topologies past the watches.
    """

    def __init__(self, watches: list[SharedWatch], api: Api | None = None) -> None:
        self._api = api
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

    def current(self, names: Collection[str]) -> KnownTopologies:
        """Return all topologies, with those of some names as the API has them now; a watch may be behind."""
        known = self.known()
        found, wrong, unread = dict(known.found), set(known.wrong), {}
        deadline = time.monotonic() + _LOOKUPS_S
        for name in names:
            found.pop(name, None)
            wrong.discard(name)
            if time.monotonic() > deadline:
                unread[name] = "the API server takes too long to answer"
                continue
            try:
                there = list(self._now(name))
            except CoterieError as error:
                unread[name] = str(error)
                continue
            if (topology := next((each for each in there if each is not None), None)) is not None:
                found[name] = topology
            elif there:
                wrong.add(name)
        return KnownTopologies(TopologyLookup(found, unread), frozenset(wrong), told=True)

    def _now(self, name: str) -> Iterator[Topology | None]:
        """Yield the topologies of a name up to the first that can be used, None for each that cannot."""
        if self._api is None or not is_subdomain(name):
            return
        for watch in self._watches:
            try:
                data = find(self._api, watch.kind, name, Object)
            except MissingKind:
                continue
            if data is not None:
                topology = _read({**data, "apiVersion": watch.kind.api_version, "kind": watch.kind.name})
                yield topology
                if topology is not None:
                    return

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
