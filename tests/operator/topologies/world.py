"""A cluster in memory that carries out the steps of an exchange, for tests of the pure part."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.backends.kai.topology_resource import KaiTopologyResource
from coterie.frontends.grove.topology import ClusterTopology, read_cluster_topology
from coterie.frontends.kubernetes.objects import resource_of
from coterie.operator.topologies.replacement import Creation, Exchange, Redirection, Removal, Repair, Step, next_step

Object = dict[str, Any]
KAI = KaiTopologyResource()


def topology(*keys: str, name: str = "hall", uid: str = "u1", **spec: Any) -> ClusterTopology:
    levels = [{"domain": f"level-{index}", "key": key} for index, key in enumerate(keys)]
    return read_cluster_topology(resource_of(topology_object(levels, name, uid, **spec)), None)


def topology_object(levels: Sequence[Mapping[str, str]], name: str = "hall", uid: str = "u1", **spec: Any) -> Object:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": name, "uid": uid, "generation": 3, "resourceVersion": "9"},
        "spec": {"levels": list(levels), **spec},
    }


def pod_group(name: str, to: str, *inner: str) -> Object:
    constraint = {"topology": to, "requiredTopologyLevel": "rack"}
    groups = [{"name": f"g{index}", "topologyConstraint": {"topology": each}} for index, each in enumerate(inner)]
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"topologyConstraint": constraint, "subGroups": groups},
    }


@dataclass
class World:
    """KAI's Topologies and PodGroups; every state that an observer could see is recorded by `carry_out`."""

    topologies: dict[str, Object] = field(default_factory=dict)
    groups: dict[str, Object] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    count: int = 0

    def step(self, found: ClusterTopology) -> Step | None:
        waiting = frozenset(("team", name) for name in self.waiting)
        return next_step(found, KAI, self.topologies, list(self.groups.values()), waiting)

    def carry_out(self, step: Step) -> Iterator[None]:
        """Carry out a step; yield after each write, as if the operator could be killed there."""
        match step:
            case Creation(manifest) | Repair(manifest):
                self._put(manifest)
                yield
            case Exchange(name, uid, manifest):
                self._remove(name, uid)
                yield
                self._put(manifest)
                yield
            case Removal(name, uid):
                self._remove(name, uid)
                yield
            case Redirection(work):
                for _, name, operations in work:
                    self._patch(self.groups[name], operations)
                    yield

    def finish(self, found: ClusterTopology, most: int = 30) -> None:
        for _ in range(most):
            step = self.step(found)
            if step is None:
                return
            for _ in self.carry_out(step):
                pass
        raise AssertionError("the exchange does not end")

    def lost(self) -> set[str]:
        """Return the waiting groups that refer to a Topology that does not exist."""
        return {
            name
            for name in self.waiting
            if not set(KAI.references(self.groups[name]).values()) <= self.topologies.keys()
        }

    def _put(self, manifest: Mapping[str, Any]) -> None:
        self.count += 1
        made = copy.deepcopy(dict(manifest))
        made["metadata"].setdefault("uid", f"t{self.count}")
        self.topologies[made["metadata"]["name"]] = made

    def _remove(self, name: str, uid: str) -> None:
        if self.topologies[name]["metadata"]["uid"] == uid:
            del self.topologies[name]

    def _patch(self, group: Object, operations: Sequence[Mapping[str, Any]]) -> None:
        for operation in operations:
            *way, last = operation["path"].strip("/").split("/")
            at: Any = group
            for part in way:
                at = at[int(part)] if isinstance(at, list) else at[part]
            if operation["op"] == "test":
                assert at[last] == operation["value"]
            else:
                at[last] = operation["value"]
