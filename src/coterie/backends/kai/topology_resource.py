"""KAI's Topology as the topology resource of its scheduler, and the references of PodGroups to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coterie.backends.base.topology_resource import WorkLevel
from coterie.errors import field_path
from coterie.frontends.grove.kai_topology import CLUSTER_TOPOLOGY, COTERIE, KAI_VERSION, MANAGED_BY, read_kai_topology
from coterie.frontends.grove.podcliqueset.written_constraints import items_of, mapping_at
from coterie.frontends.grove.topology import KAI, kai_refuses

Object = Mapping[str, Any]

_POD_GROUP_NAME = "pod-group-name"


class KaiTopologyResource:
    """The functions of `TopologyResource` for KAI."""

    scheduler = KAI
    api_version = KAI_VERSION
    kind = "Topology"
    work = ("scheduling.run.ai/v2alpha2", "PodGroup")

    def resource_name(self, topology: str) -> str:
        """Return the name of the resource that belongs to a topology."""
        return topology

    def manifest(self, name: str, topology: str, labels: Sequence[str]) -> dict[str, Any]:
        """Return the resource of a topology with node labels, coarsest first."""
        return {
            "apiVersion": KAI_VERSION,
            "kind": self.kind,
            "metadata": {
                "name": name,
                "labels": {MANAGED_BY: COTERIE},
                "annotations": {CLUSTER_TOPOLOGY: topology},
            },
            "spec": {"levels": [{"nodeLabel": label} for label in labels]},
        }

    def labels(self, found: Object) -> tuple[str, ...]:
        """Return the node labels of a resource; raise ValueError for an invalid one."""
        return read_kai_topology(found).keys

    def refusal(self, labels: Sequence[str]) -> str:
        """Return why the scheduler rejects a resource with these labels, or an empty string."""
        return kai_refuses(labels)

    def work_of(self, pod: Object) -> str:
        """Return the name of the PodGroup of a pod; empty if it has none."""
        return str((pod.get("metadata") or {}).get("annotations", {}).get(_POD_GROUP_NAME, ""))

    def references(self, work: Object) -> Mapping[str, str]:
        """Return the names of Topologies that a PodGroup refers to, by JSON pointer."""
        found = {
            f"/{'/'.join(map(str, path))}/topology": constraint.get("topology")
            for path, constraint in _constraints(work)
        }
        return {pointer: name for pointer, name in found.items() if isinstance(name, str) and name}

    def levels(self, work: Object) -> Sequence[WorkLevel]:
        """Return the levels that a PodGroup and its subgroups name."""
        return [
            WorkLevel(field_path(path), constraint["topology"], str(label), required)
            for path, constraint in _constraints(work)
            for name, required in (("requiredTopologyLevel", True), ("preferredTopologyLevel", False))
            if isinstance(constraint.get("topology"), str) and (label := constraint.get(name))
        ]


def _constraints(work: Object) -> Iterator[tuple[tuple[str | int, ...], Object]]:
    """Yield the constraints of a PodGroup and of its subgroups, with their paths; fields of another form have none."""
    spec = mapping_at(work, "spec")
    for path, part in ((("spec",), spec), *items_of(spec, "subGroups", ("spec",))):
        if constraint := mapping_at(part, "topologyConstraint"):
            yield (*path, "topologyConstraint"), constraint
