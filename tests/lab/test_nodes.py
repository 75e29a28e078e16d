"""Clusters that Coterie has read, as objects of the lab."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.planning.inputs import read_snapshot
from coterie.topology.cluster import Cluster, Node
from lab import Lab, nodes
from tests.lab.gangs import CLIQUE, snapshot

FULL = f"""
nodes:
- {{name: plain, gpu: 8, cpu: 64, memory: 1Ti}}
- {{name: half-core, cpu: 500m, memory: 512Mi, pods: 20, storage: 10Gi, allocatable: {{example.com/nic: 2}}}}
- name: tainted
  labels: {{disk: nvme, {CLIQUE}: c1, empty: ""}}
  gpu: 4
  taints: [{{key: dedicated, value: ml, effect: NoSchedule}}, {{key: soft, effect: PreferNoSchedule}}]
- {{name: cordoned, gpu: 4, cordoned: true}}
- {{name: not-ready, gpu: 4, ready: false}}
pods:
- {{owner: wf-12, gpu: 2, nodes: [plain, tainted]}}
- {{name: crew/alone, node: plain, gpu: 1, cpu: 2}}
- {{name: crew/web-1, node: plain, owner: crew/web, cpu: 1}}
- {{name: kube-system/agent-1, node: plain, owner: kube-system/agent, cpu: 100m, daemon: true}}
- {{name: crew/leaving, node: cordoned, gpu: 4, terminating: true}}
- {{name: t1, node: not-ready, labels: {{coterie.dev/workflow: w, coterie.dev/group: g, coterie.dev/task: t}}}}
"""


def _columns(cluster: Cluster) -> dict[str, list[str | None]]:
    return {key: [cluster.label(index, key) for index in range(len(cluster))] for key in cluster.columns}


def test_a_cluster_is_read_back_as_it_was_added(lab: Lab) -> None:
    wanted = snapshot(FULL).cluster
    nodes.add(lab, wanted)
    found = read_snapshot(lab.kubectl("get", "nodes,pods", "-A", "-o", "json").encode(), "kubectl").cluster
    assert found.names == wanted.names
    assert _columns(found) == _columns(wanted)
    assert found.resources == wanted.resources
    assert np.array_equal(found.allocatable, wanted.allocatable)
    assert [found.taint_sets[index] for index in found.taint_set] == [
        wanted.taint_sets[index] for index in wanted.taint_set
    ]
    assert found.cordoned.tolist() == wanted.cordoned.tolist()
    assert found.ready.tolist() == wanted.ready.tolist()
    # A cluster file tells no labels of pods but those of Coterie, which are known as members.
    assert [replace(pod, labels=None) for pod in found.pods] == list(wanted.pods)


def test_nodes_of_a_clique_announce_their_devices(lab: Lab) -> None:
    nodes.add(lab, snapshot(FULL))
    slices = lab.objects("resourceslices")
    assert [each["spec"]["nodeName"] for each in slices] == ["tainted"]


def test_many_nodes_are_added_at_once(lab: Lab) -> None:
    labels = {CLIQUE: "c"}
    nodes.add(lab, Cluster.of(Node(f"n{index}", labels, {"nvidia.com/gpu": 4}) for index in range(512)))
    assert len(lab.objects("nodes")) == 512
