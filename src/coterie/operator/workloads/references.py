"""The objects that refer to each topology, and the graph of each PodCliqueSet, kept up to date from the watches.

A change of one topology concerns its users alone, however many objects there are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from coterie.frontends.dynamo.written_constraints import graph_constraints
from coterie.frontends.grove.podcliqueset.model import TopologyConstraint
from coterie.frontends.grove.podcliqueset.written_constraints import set_constraints
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.kinds import GRAPH_DEPLOYMENT, POD_CLIQUE_SET, ObjectKind
from coterie.operator.controller import ObjectKey

Object = dict[str, Any]

_GRAPH_LABEL = "nvidia.com/dynamo-graph-deployment-name"

READERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[TopologyConstraint, ...]]] = {
    POD_CLIQUE_SET.name: set_constraints,
    GRAPH_DEPLOYMENT.name: graph_constraints,
}


class TopologyReferences:
    """Keys of objects by the name of a topology, and the set that was made for a graph."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[ObjectKey, frozenset[str]] = {}
        self._users: dict[str, set[ObjectKey]] = {}
        self._sets: dict[ObjectKey, str] = {}

    def changed(self, kind: ObjectKind, change: CacheChange[Object]) -> tuple[ObjectKey, ...]:
        """Take a change of an object, and return the keys that it concerns: the object, and a set's graph."""
        meta = change.entry.meta
        key = (kind.name, meta.namespace, meta.name)
        gone = change.did is ChangeType.DELETED
        names = frozenset() if gone else _names(READERS[kind.name](change.entry.value))
        graph = graph_of(change.entry.value) if kind.name == POD_CLIQUE_SET.name else ""
        owner = (GRAPH_DEPLOYMENT.name, meta.namespace, graph)
        with self._lock:
            for name in self._names.pop(key, frozenset()) - names:
                self._users[name].discard(key)
                if not self._users[name]:
                    del self._users[name]
            if names:
                self._names[key] = names
            for name in names:
                self._users.setdefault(name, set()).add(key)
            if graph and gone:
                self._sets.pop(owner, None)
            elif graph:
                self._sets[owner] = meta.name
        return (key, owner) if graph else (key,)

    def users(self, topology: str) -> tuple[ObjectKey, ...]:
        """Return the objects that refer to a topology."""
        with self._lock:
            return tuple(self._users.get(topology, ()))

    def set_of(self, graph: ObjectKey) -> str:
        """Return the name of the PodCliqueSet that was made for a graph, or an empty string."""
        with self._lock:
            return self._sets.get(graph, "")


def graph_of(found: Object) -> str:
    """Return the graph deployment that a PodCliqueSet was made for, or an empty string."""
    metadata = found["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("kind") == GRAPH_DEPLOYMENT.name:
            return str(owner.get("name", ""))
    return str((metadata.get("labels") or {}).get(_GRAPH_LABEL, ""))


def _names(constraints: tuple[TopologyConstraint, ...]) -> frozenset[str]:
    return frozenset(each.topology for each in constraints if each.topology)
