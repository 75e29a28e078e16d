"""The obstacles on nodes are counted, each node once, for its most fundamental obstacle."""

from __future__ import annotations

import pytest

from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Expression, Gang, Shape, Task, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from coterie.placement.explain.obstacles import Obstacle, causes
from coterie.placement.refusal import Tally
from coterie.rendering.causes import counted
from coterie.rendering.refusals import message
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, Cluster, Node, Pod, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

EIGHT = Shape(requests=((GPU, 8),))


def domains(*nodes: Node, pods: tuple[Pod, ...] = ()) -> Domains:
    return Domains.of(Cluster.of(nodes, pods), Topology())


def node(
    name: str,
    gpus: int = 8,
    *,
    cpu: int = 32,
    taints: tuple[Taint, ...] = (),
    cordoned: bool = False,
    ready: bool = True,
) -> Node:
    there = {GPU: gpus, CPU: cpu * 1000, MEMORY: 64 << 30, PODS: 4}
    return Node(name, {"kind": name}, there, taints, cordoned=cordoned, ready=ready)


MIXED = domains(
    node("n1", taints=(Taint("dedicated"),)),
    node("n2", taints=(Taint("dedicated"),)),
    node("n3", gpus=4),
    node("n4", cordoned=True),
)


def kinds(shape: Shape, capacity: Capacity) -> list[tuple[Obstacle, str, int]]:
    return [(one.obstacle, one.about, one.nodes) for one in causes(shape, capacity).counted(capacity)]


def told(shape: Shape, capacity: Capacity) -> str:
    found = causes(shape, capacity).counted(capacity)
    return counted(Tally("t0", 1, 0, (), len(capacity.domains), 0, 0, found))


def test_every_node_is_counted_once_for_the_first_thing_in_its_way() -> None:
    assert kinds(EIGHT, Capacity.now(MIXED)) == [
        (Obstacle.TAINTED, "dedicated", 2),
        (Obstacle.CORDONED, "", 1),
        (Obstacle.TOO_SMALL, GPU, 1),
    ]


def test_a_node_that_takes_the_task_is_not_counted() -> None:
    tolerant = Shape(requests=((GPU, 4),), tolerations=(Toleration("dedicated", "Exists"),))
    assert kinds(tolerant, Capacity.now(MIXED)) == [(Obstacle.CORDONED, "", 1)]


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (Shape(requests=((GPU, 16),)), "n1 has 8 GPUs, 16 asked"),
        (Shape(requests=((CPU, 64_000),)), "n1 has 32 CPU, 64 asked"),
        (Shape(requests=((CPU, 31_500),)), "n1 has 31 CPU beside DaemonSets, 31.5 asked"),
        (Shape(requests=((CPU, 25_000),)), "n1 has 24.9 CPU free, 25 asked"),
        (Shape(requests=((MEMORY, 96 << 30),)), "n1 has 64 GiB memory, 96 GiB asked"),
        (Shape(requests=((CPU, 2_000_000_000),)), "n1 has 32 CPU, 2,000,000 asked"),
        (Shape(requests=((MEMORY, (64 << 30) + (1 << 20)),)), "n1 has 64 GiB memory, 64.001 GiB asked"),
        (Shape(requests=(("example.com/none", 1),)), "n1 has no example.com/none"),
        (Shape(selector=(("kind", "other"),)), "n1 lacks the label kind=other"),
        (Shape(affinity=((Expression("kind", "In", ("other",)),),)), "n1 does not match the node affinity"),
        (Shape(excluded=frozenset({"n1"})), "n1 is in nodesExcluded"),
        (Shape(requests=((CHANNEL, 1),)), "n1 has no NVLink channel"),
        (Shape(requests=((GPU, 8),)), "n1 has 1 GPU free, 8 asked"),
    ],
)
def test_a_cause_says_what_is_offered_against_what_is_asked(shape: Shape, why: str) -> None:
    held = (
        Pod("ds", "n1", {CPU: 1000}, daemon=True),
        Pod("job", "n1", {CPU: 6100, GPU: 7}, owner="job"),
    )
    assert told(shape, Capacity.now(domains(node("n1"), pods=held))) == why


def test_several_nodes_are_counted_and_a_single_one_is_named() -> None:
    found = domains(*(node(f"n{number}", gpus=4) for number in range(12)), node("n17", ready=False))
    assert told(EIGHT, Capacity.now(found)) == "12 nodes have 4 GPUs, 8 asked; n17 is not ready"


def test_nodes_that_offer_different_amounts_are_one_cause_with_both_bounds() -> None:
    found = domains(node("n1", gpus=2), node("n2", gpus=4))
    assert told(EIGHT, Capacity.now(found)) == "2 nodes have 2 to 4 GPUs, 8 asked"


def test_a_node_without_gpus_is_that_whatever_else_it_lacks() -> None:
    control = node("cp", gpus=0, cpu=4, taints=(Taint("node-role.kubernetes.io/control-plane"),), ready=False)
    shape = Shape(requests=((CPU, 16_000), (GPU, 1)), selector=(("kind", "other"),))
    assert told(shape, Capacity.now(domains(control))) == "cp has no GPU"


def test_of_several_resources_gpus_come_first() -> None:
    shape = Shape(requests=((CPU, 64_000), (GPU, 16), (MEMORY, 1 << 40)))
    assert told(shape, Capacity.now(domains(node("n1")))) == "n1 has 8 GPUs, 16 asked"


def test_what_a_node_can_never_have_comes_before_what_is_in_use() -> None:
    held = (Pod("job", "n1", {GPU: 8}, owner="job"),)
    shape = Shape(requests=((CPU, 64_000), (GPU, 8)))
    assert told(shape, Capacity.now(domains(node("n1"), pods=held))) == "n1 has 32 CPU, 64 asked"


def test_a_full_node_and_one_with_too_few_free_are_told_apart() -> None:
    held = (Pod("a", "n1", {GPU: 8}, owner="a"), Pod("b", "n2", {GPU: 4}, owner="b"))
    found = domains(node("n1"), node("n2"), pods=held)
    assert told(EIGHT, Capacity.now(found)) == "n1 has no GPU free, 8 asked; n2 has 4 GPUs free, 8 asked"


def test_a_node_that_takes_no_more_pods_is_said_to_have_no_room_for_one() -> None:
    held = tuple(Pod(f"p{number}", "n1", {}, owner="a") for number in range(4))
    assert told(EIGHT, Capacity.now(domains(node("n1"), pods=held))) == "n1 has no room for another pod"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (node("n1", taints=(Taint("node.kubernetes.io/not-ready"),), ready=False), "n1 is not ready"),
        (node("n1", taints=(Taint("node.kubernetes.io/unschedulable"),), cordoned=True), "n1 is cordoned"),
        (
            node("n1", taints=(Taint("node.kubernetes.io/disk-pressure"),)),
            "n1 has the taint node.kubernetes.io/disk-pressure, not tolerated",
        ),
    ],
)
def test_taints_that_kubernetes_sets_itself_are_called_what_they_stand_for(one: Node, why: str) -> None:
    assert told(EIGHT, Capacity.now(domains(one))) == why


def test_only_the_taints_that_are_not_tolerated_are_named() -> None:
    taints = (Taint("a"), Taint("b"), Taint("c"), Taint("soft", effect="PreferNoSchedule"))
    tolerant = Shape(requests=((GPU, 8),), tolerations=(Toleration("b", "Exists"),))
    assert told(tolerant, Capacity.now(domains(node("n1", taints=taints)))) == "n1 has the taints a, c, not tolerated"


def test_labels_of_the_pool_are_called_the_pool() -> None:
    found = causes(Shape(selector=(("kind", "gold"),)), capacity := Capacity.now(domains(node("n1")))).counted(capacity)
    assert counted(Tally("t0", 1, 0, (), 1, 0, 0, found), [("kind", "gold")]) == "n1 is not in the pool"


def refused(gang: Gang, found: Domains) -> str:
    refusal = decide(gang, Capacity.now(found), Capacity.empty(found)).refusal
    assert refusal is not None
    return message(refusal, gang, found.topology, found.cluster)


def test_the_sentence_of_a_refusal_ends_in_the_count() -> None:
    gang = Gang("training", (), (Task("t0", EIGHT, 0), Task("t1", EIGHT, 1)))
    tainted = domains(node("n1", taints=(Taint("dedicated"),)), node("n2", gpus=4))
    assert refused(gang, tainted) == (
        "none of its 2 tasks fits on any node, not even on an empty one "
        "(n1 has the taint dedicated, not tolerated; n2 has 4 GPUs, 8 asked)"
    )


def test_nodes_are_counted_also_where_some_tasks_fit() -> None:
    gang = Gang("training", (), (Task("t0", EIGHT, 0), Task("t1", EIGHT, 1)))
    found = domains(node("n1"), node("n2", ready=False), node("n3", gpus=0))
    assert refused(gang, found) == (
        "only 1 of 2 tasks fit now, wherever they are put (n3 has no GPU; n2 is not ready; 1 node takes 1 task)"
    )


def test_of_mixed_tasks_the_count_is_about_those_that_fit_nowhere() -> None:
    big = Shape(requests=((CPU, 64_000),))
    gang = Gang("training", (), (Task("gpu", EIGHT, 0), Task("cpu-0", big, 1), Task("cpu-1", big, 2)))
    assert refused(gang, domains(node("n1"), node("n2"))) == (
        "the empty cluster holds only 1 of 3 tasks (for cpu-0 and 1 like it: 2 nodes have 32 CPU, 64 asked)"
    )


def test_a_refusal_for_a_level_counts_the_nodes_of_the_best_domain() -> None:
    levels = Topology.of(("rack", "rack"))
    nodes = [Node(f"{rack}{number}", {"rack": rack}, {GPU: 8}) for rack in "ab" for number in range(3)]
    nodes[2] = Node("a2", {"rack": "a"}, {GPU: 8}, cordoned=True)
    nodes += [Node("c0", {}, {GPU: 8})]
    held = [Pod("p", "b0", {GPU: 8}, owner="x"), Pod("q", "b1", {GPU: 8}, owner="x")]
    found = Domains.of(Cluster.of(nodes, held), levels)
    gang = build("g", [RequestedTask(f"t{number}", EIGHT, (TaskRequirement("rack"),)) for number in range(3)], levels)
    assert refused(gang, found).endswith("(in a, a2 is cordoned; 2 nodes take 1 task each)")
