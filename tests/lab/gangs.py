"""Clusters and gangs for the tests of the lab, written as KAI takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.planning.inputs import read_snapshot
from coterie.sources import Snapshot
from lab import Lab, nodes

ZONE, CLIQUE = "topology.kubernetes.io/zone", "nvidia.com/gpu.clique"
TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": ZONE}, {"nodeLabel": CLIQUE}]},
}


def snapshot(text: str) -> Snapshot:
    return read_snapshot(text.encode(), "cluster.yaml")


def two_zones() -> Snapshot:
    """Two cliques of four nodes in zone a, one in zone b; four GPUs each node."""
    return snapshot(f"""
        topology_keys:
        - {{key: zone, label: {ZONE}}}
        - {{key: gpu-clique, label: {CLIQUE}}}
        fleet:
        - {{domains: {{zone: a, gpu-clique: [a1, a2]}}, nodes: 4, gpu: 4, cpu: 32, memory: 256Gi}}
        - {{domains: {{zone: b, gpu-clique: b1}}, nodes: 4, gpu: 4, cpu: 32, memory: 256Gi}}
    """)


def pod(gang: str, name: str, *, subgroup: str = "", gpus: int = 4, queue: str = "default") -> dict[str, Any]:
    labels = {"kai.scheduler/queue": queue, **({"kai.scheduler/subgroup-name": subgroup} if subgroup else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": {"pod-group-name": gang, "kai.scheduler/skip-podgrouper": "true"},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "work", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        },
    }


def two_models(gang: str, size: int = 4) -> list[dict[str, Any]]:
    """Two models, each on one clique, both in one zone: eight pods that are placed together or not at all."""
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": gang, "namespace": "default"},
        "spec": {
            "queue": "default",
            "minMember": 2 * size,
            "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": ZONE},
            "subGroups": [
                {
                    "name": model,
                    "minMember": size,
                    "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": CLIQUE},
                }
                for model in ("model-1", "model-2")
            ],
        },
    }
    pods = [
        pod(gang, f"{gang}-{model}-{index}", subgroup=model)
        for model in ("model-1", "model-2")
        for index in range(size)
    ]
    return [group, *pods]


def places(lab: Lab, label: str) -> Mapping[str, set[str]]:
    """Return the values of a node label under each subgroup's pods."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in lab.objects("nodes")}
    found: dict[str, set[str]] = {}
    for each in lab.objects("pods", "default"):
        if node := each["spec"].get("nodeName"):
            found.setdefault(each["metadata"]["labels"]["kai.scheduler/subgroup-name"], set()).add(labels[node][label])
    return found


def phases(lab: Lab) -> set[str]:
    return {each["status"].get("phase", "") for each in lab.objects("pods", "default")}


def prepare(lab: Lab, cluster: Snapshot) -> None:
    nodes.add(lab, cluster)
    lab.queue("default")
    lab.apply(TOPOLOGY)
