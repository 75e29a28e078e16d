"""The output of kubectl becomes a cluster, independent of order and of other objects in it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.gang.tree import Gang, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from coterie.rendering.causes import counted
from coterie.sources import Snapshot
from coterie.sources.kubectl import read_kubectl
from coterie.topology.cluster import Member, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

Json = dict[str, Any]


def node(name: str = "n1", **status: Any) -> Json:
    status.setdefault("allocatable", {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "110"})
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str = "p1", on: str | None = "n1", **spec: Any) -> Json:
    spec.setdefault("containers", [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}}])
    metadata = {"name": name, "namespace": "default"}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": on, **spec}, "status": {"phase": "Running"}}


def listing(*items: object, kind: str = "List") -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": items, "metadata": {"resourceVersion": ""}}).encode()


def read(*items: object, kind: str = "List") -> Snapshot:
    return read_kubectl(listing(*items, kind=kind), "snapshot.json")


def held(spec: Json) -> dict[str, int]:
    return dict(read(node(), pod(**spec)).cluster.pods[0].requests)


def container(always: bool = False, limits: Json | None = None, **requests: Any) -> Json:  # noqa: FBT001, FBT002 - reads as a word
    made: Json = {"name": "c", "resources": {"requests": requests}}
    if limits:
        made["resources"]["limits"] = limits
    if always:
        made["restartPolicy"] = "Always"
    return made


def test_a_node_is_read_with_all_that_placement_needs() -> None:
    full = node(conditions=[{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}])
    full["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    full["spec"] = {
        "taints": [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026"},
            {"key": "k", "effect": "NoExecute"},
        ]
    }
    cluster = read(full, pod()).cluster
    assert cluster.names == ("n1",)
    assert cluster.label(0, "topology.kubernetes.io/zone") == "a"
    offered = dict(zip(cluster.resources, cluster.allocatable[:, 0].tolist(), strict=True))
    assert offered == {"cpu": 4000, "memory": 8 << 30, "nvidia.com/gpu": 8, "pods": 110}
    assert cluster.taint_sets == ((Taint("gpu", "yes"), Taint("k", "", "NoExecute")),)
    assert bool(cluster.ready[0])
    assert not cluster.cordoned[0]


def test_capacity_stands_in_for_an_absent_allocatable() -> None:
    bare = node(capacity={"nvidia.com/gpu": "4"})
    del bare["status"]["allocatable"]
    cluster = read(bare, pod(on=None)).cluster
    assert cluster.allocatable[cluster.resource("nvidia.com/gpu"), 0] == 4


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        (None, True),
        ([], True),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "MemoryPressure", "status": "True"}], True),
    ],
)
def test_a_node_is_ready_unless_its_ready_condition_says_otherwise(conditions: object, ready: bool) -> None:  # noqa: FBT001 - a table's column
    assert bool(read(node(conditions=conditions)).cluster.ready[0]) is ready


def test_a_cordon_is_a_cordon_and_not_also_a_taint() -> None:
    cordoned = node()
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cordoned["spec"] = {"unschedulable": True, "taints": [taint]}
    only_tainted = node("n2")
    only_tainted["spec"] = {"taints": [taint]}
    cluster = read(cordoned, only_tainted).cluster
    assert cluster.cordoned.tolist() == [True, False]
    assert [len(cluster.taint_sets[which]) for which in cluster.taint_set] == [0, 1]


def test_a_node_that_is_being_deleted_takes_no_new_work_and_is_told_as_such() -> None:
    leaving = node()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    domains = Domains.of(read(leaving).cluster, Topology())
    gang = Gang("g", tasks=(Task("t", Shape((("nvidia.com/gpu", 1),))),))

    refusal = decide(gang, Capacity.now(domains), Capacity.empty(domains)).refusal

    assert refusal
    assert refusal.tally
    assert counted(refusal.tally) == "n1 is being deleted"
    assert refusal.ways_out == ()


REQUESTS: list[tuple[str, Json, dict[str, int]]] = [
    (
        "containers add up",
        {"containers": [container(cpu="1"), container(cpu="500m", memory="1Ki")]},
        {"cpu": 1500, "memory": 1024},
    ),
    ("no containers", {"containers": None}, {}),
    ("no resources", {"containers": [{"name": "c"}, {"resources": None}, {"resources": {"requests": None}}]}, {}),
    ("zero is nothing", {"containers": [container(cpu="0")]}, {}),
    (
        "a large init container counts alone",
        {"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]},
        {"cpu": 3000},
    ),
    (
        "a small init container does not count",
        {"containers": [container(cpu="2")], "initContainers": [container(cpu="1")]},
        {"cpu": 2000},
    ),
    (
        "sidecars run beside the containers",
        {"containers": [container(cpu="2")], "initContainers": [container(always=True, cpu="1")]},
        {"cpu": 3000},
    ),
    (
        "an init container runs beside the sidecars before it, not those after it",
        {
            "containers": [container(cpu="1")],
            "initContainers": [
                container(always=True, cpu="1"),
                container(cpu="5"),
                container(always=True, cpu="2"),
                container(cpu="4"),
            ],
        },
        {"cpu": 7000},
    ),
    (
        "the rule holds for each resource by itself",
        {"containers": [container(cpu="4", memory="1Ki")], "initContainers": [container(cpu="1", memory="3Ki")]},
        {"cpu": 4000, "memory": 3072},
    ),
    (
        "overhead comes on top",
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Ki"}},
        {"cpu": 1250, "memory": 1024},
    ),
    (
        "a pod's own requests take the place of the sum",
        {"containers": [container(cpu="1", memory="1Ki")], "resources": {"requests": {"cpu": "3"}}},
        {"cpu": 3000, "memory": 1024},
    ),
    (
        "a pod's own limit counts where nothing is requested",
        {"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "3", "memory": "1Ki"}}},
        {"cpu": 1000, "memory": 1024},
    ),
    (
        "a limit alone is a request",
        {"containers": [container(limits={"nvidia.com/gpu": 4, "cpu": "2"}, cpu="1")]},
        {"cpu": 1000, "nvidia.com/gpu": 4},
    ),
]


@pytest.mark.parametrize(("spec", "expected"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS])
def test_a_pod_holds_what_kubernetes_says_it_holds(spec: Json, expected: dict[str, int]) -> None:
    assert held(spec) == expected


def test_pods_that_hold_nothing_are_left_out_and_terminating_ones_are_not() -> None:
    done, failed, going = pod("done"), pod("failed"), pod("going")
    done["status"]["phase"] = "Succeeded"
    failed["status"]["phase"] = "Failed"
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = read(node(), done, failed, going, pod("waiting", on=None), pod("unassigned", on="")).cluster
    assert [(each.name, each.terminating) for each in cluster.pods] == [("default/going", True)]


def owned(kind: str, *, controller: bool = True) -> Json:
    made = pod()
    made["metadata"]["ownerReferences"] = [{"kind": kind, "name": "boss", "controller": controller}]
    return made


def mirrored() -> Json:
    made = pod()
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash", "other": "x"}
    return made


@pytest.mark.parametrize(
    ("item", "daemon", "owner"),
    [
        (pod(), False, "default/p1"),
        (owned("ReplicaSet"), False, "default/boss"),
        (owned("Job"), False, "default/boss"),
        (owned("DaemonSet"), True, "default/boss"),
        (owned("DaemonSet", controller=False), False, "default/p1"),
        (owned("Node"), True, "default/boss"),
        (mirrored(), True, "default/p1"),
    ],
    ids=["alone", "ReplicaSet", "Job", "DaemonSet", "not its controller", "static", "mirror"],
)
def test_a_pod_has_an_owner_and_may_belong_to_its_node(item: Json, daemon: bool, owner: str) -> None:  # noqa: FBT001 - a table's column
    read_pod = read(node(), item).cluster.pods[0]
    assert (read_pod.daemon, read_pod.owner) == (daemon, owner)


def test_a_task_of_coteries_is_known_by_its_three_labels() -> None:
    full, partial = owned("Job"), pod("p2")
    full["metadata"]["labels"] = {f"coterie.dev/{key}": key[0] for key in ("workflow", "group", "task")} | {"app": "x"}
    partial["metadata"]["labels"] = {"coterie.dev/workflow": "w", "coterie.dev/task": "t"}
    first, second = read(node(), full, partial).cluster.pods
    assert (first.owner, first.member) == ("w", Member("w", "g", "t"))
    assert (second.owner, second.member) == ("w", None)


def test_pods_go_by_the_node_name_and_not_by_its_hostname_label() -> None:
    named = node("ip-10-0-1-2.example.internal")
    named["metadata"]["labels"] = {"kubernetes.io/hostname": "ip-10-0-1-2"}
    assert len(read(named, pod(on="ip-10-0-1-2.example.internal")).cluster.pods) == 1
    lost = read(named, pod(on="ip-10-0-1-2"))
    assert not lost.cluster.pods
    assert [notice.code for notice in lost.notices] == ["PodsWithoutNode"]


def test_lists_of_one_kind_need_no_kind_in_their_items() -> None:
    bare = [node("n2"), node("n1")]
    for item in bare:
        del item["kind"]
    assert read(*bare, kind="NodeList").cluster.names == ("n1", "n2")
    assert read(*[node("n2"), node("n1")], kind="NodeList").cluster.names == ("n1", "n2")
    assert read_kubectl(json.dumps(node()).encode(), "f").cluster.names == ("n1",)


def test_other_kinds_are_ignored_and_only_strange_ones_are_mentioned() -> None:
    crd = {"kind": "PodGroup", "metadata": 3, "spec": [1], "status": "odd"}
    quiet = read(node(), crd, pod())
    assert (len(quiet.cluster.pods), quiet.notices) == (1, ())
    services = [{"kind": "Service", "spec": {"containers": "no"}}] * 2
    loud = read(node(), *services, pod(), {"no": "kind"})
    assert [notice.message for notice in loud.notices] == [
        "ignored, because they are neither nodes nor pods: 1 without a kind, 2 Service"
    ]


def test_a_snapshot_without_pods_says_that_all_nodes_count_as_empty() -> None:
    assert [notice.code for notice in read(node()).notices] == ["NoPods"]
    assert read(node(), pod(on=None)).notices == ()


def test_a_node_that_holds_more_than_it_has_is_noticed() -> None:
    greedy = pod(containers=[{"resources": {"requests": {"nvidia.com/gpu": "9"}}}])
    notices = read(node(), greedy).notices
    assert [notice.message for notice in notices] == ["pods hold more nvidia.com/gpu than there is on n1"]


def test_sums_over_the_cluster_never_leave_an_int64() -> None:
    huge = {"memory": "8Ei", "cpu": "1"}
    nodes = [node(f"n{index}", allocatable=huge) for index in range(5)]
    pods = [pod(f"p{index}", containers=[container(memory="4Ei")]) for index in range(5)]
    snapshot = read(*nodes, *pods)
    cluster = snapshot.cluster
    assert int(cluster.allocatable[cluster.resource("memory")].sum()) > 0
    assert int(cluster.pod_requests[cluster.resource("memory")].sum()) > 0
    assert "impossibly large amounts of memory were lowered" in [notice.message for notice in snapshot.notices]


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_matter(shuffler: random.Random) -> None:
    items = [*(node(f"n{index}") for index in range(4)), *(pod(f"p{index}", on=f"n{index % 4}") for index in range(6))]
    ordered = read(*items).cluster
    shuffler.shuffle(items)
    shuffled = read(*items).cluster
    assert ordered.names == shuffled.names
    assert ordered.pods == shuffled.pods
    assert (ordered.allocatable == shuffled.allocatable).all()


def test_a_pod_that_grove_made_is_the_task_that_its_labels_name() -> None:
    labels = {
        "app.kubernetes.io/part-of": "chat",
        "grove.io/podgang": "chat-0-shard-0",
        "grove.io/podclique": "chat-0-shard-1-work",
        "grove.io/podclique-pod-index": "2",
    }
    one = pod()
    one["metadata"]["labels"] = labels
    (found,) = read_kubectl(json.dumps({"kind": "List", "items": [node(), one]}).encode(), "s.json").cluster.pods
    assert found.member == Member("chat", "chat-0-shard-0", "chat-0-shard-1-work-2")
    assert found.owner == "chat"
