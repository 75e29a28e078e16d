"""Builders of small PodCliqueSets, their manifests, and clusters in which their pods run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from coterie.backends.kai.manifests.render import RenderedManifests, RenderRequest
from coterie.backends.kai.sets.names import CompiledSet
from coterie.backends.kai.sets.render import render_set
from coterie.config.configuration import Pool
from coterie.errors import SpecErrors, field_path
from coterie.planning.pod_clique_sets import prepare_set
from coterie.sources.task_labels import GROUP, TASK, WORKFLOW
from coterie.topology.cluster import GPU, Cluster, Member, Node, Pod
from coterie.topology.levels import Topology
from tests.frontends.grove.objects import (
    LEVELS,
    TOPOLOGIES,
    Manifest,
    clique,
    group,
    podcliqueset,
    read,
)

POOL = Pool("default", "kai", "kai", topology=LEVELS)
BLOCK = {"topologyName": "t", "pack": {"required": "block"}}


def following(**constraint: Any) -> Manifest:
    """Return a set whose second and third shard follow the base gang; keywords are the set's pack."""
    shards = group("shard", "lead", "work", replicas=3, topologyConstraint={"pack": {"required": "rack"}})
    whole = {"topologyName": "t", "pack": constraint or {"required": "block"}}
    parts = (clique("a", minAvailable=1), clique("lead", 4, replicas=1), clique("work", 4, replicas=2))
    return podcliqueset(*parts, groups=[shards], topologyConstraint=whole)


def subject(manifest: Manifest, pool: Pool = POOL, topologies: Mapping[str, Topology] = TOPOLOGIES) -> CompiledSet:
    prepared = prepare_set(read(manifest), pool, topologies, configured=False)
    return CompiledSet(prepared.pcs.name, prepared.pcs, prepared.lowered, prepared.pool, prepared.topology_name)


def rendered(manifest: Manifest, pool: Pool = POOL, namespace: str = "serving", **more: Any) -> RenderedManifests:
    return render_set(subject(manifest, pool), RenderRequest(namespace, **more))


def of_kind(found: RenderedManifests, kind: str) -> list[Any]:
    return [manifest for manifest in found.manifests if manifest["kind"] == kind]


def names(found: RenderedManifests, kind: str) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in of_kind(found, kind)]


def gangs(found: RenderedManifests) -> list[str]:
    """Return the gangs that are written."""
    return [manifest["metadata"]["labels"][GROUP] for manifest in of_kind(found, "PodGroup")]


def pods(found: RenderedManifests, clique_name: str) -> list[Any]:
    """Return the pods of a clique instance, by Grove's name of it."""
    return [pod for pod in of_kind(found, "Pod") if pod["metadata"]["labels"]["grove.io/podclique"] == clique_name]


def with_pod(**fields: Any) -> Manifest:
    """Return a set of one clique with one pod; keywords go to its pod spec."""
    made = podcliqueset(clique("a", 4, replicas=1))
    made["spec"]["template"]["cliques"][0]["spec"]["podSpec"].update(fields)
    return made


def only_pod(**fields: Any) -> Any:
    (pod,) = of_kind(rendered(with_pod(**fields)), "Pod")
    return pod


def codes(found: RenderedManifests) -> list[str]:
    return [notice.code for notice in found.notices]


def faults_of(manifest: Manifest, **more: Any) -> dict[str, str]:
    """Return what rendering refuses, by field."""
    with pytest.raises(SpecErrors) as caught:
        rendered(manifest, **more)
    assert all(fault.place and fault.place.line and fault.hint for fault in caught.value.faults)
    return {fault.field or field_path(fault.path): fault.message for fault in caught.value.faults}


def nodes(**more: str) -> list[Node]:
    """Return eight nodes: two blocks of two racks of two nodes, named by all of them, with eight GPUs each."""
    return [
        Node(
            f"{block}-{rack}-{index}",
            {
                "topology.kubernetes.io/zone": "z",
                "fabric.example.com/block": block,
                "fabric.example.com/rack": rack,
                "kubernetes.io/hostname": f"{block}-{rack}-{index}",
                **more,
            },
            {GPU: 8},
        )
        for block in ("b1", "b2")
        for rack in ("r1", "r2")
        for index in (0, 1)
    ]


def running(found: RenderedManifests, places: Mapping[str, str], more: Iterable[Node] = ()) -> Cluster:
    """Return a cluster in which rendered pods run, each on the node that its task's clique has in `places`."""
    members = []
    for pod in of_kind(found, "Pod"):
        labels, metadata = pod["metadata"]["labels"], pod["metadata"]
        if (node := places.get(labels["grove.io/podclique"], places.get(""))) is not None:
            member = Member(labels[WORKFLOW], labels[GROUP], labels[TASK])
            members.append(Pod(f"{metadata['namespace']}/{metadata['name']}", node, {}, member=member))
    return Cluster.of([*nodes(), *more], members)
