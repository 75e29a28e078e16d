"""Where not one task fits, the refusal counts what keeps it off the nodes."""

from __future__ import annotations

import pytest

from coterie.gang.tree import Gang, Shape, Task, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.explain import decide
from coterie.placement.obstacles import obstacles
from coterie.planning.words import message
from coterie.topology.cluster import GPU, MEMORY, Cluster, Node, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

EIGHT = Shape(requests=((GPU, 8),))


def domains(*nodes: Node) -> Domains:
    return Domains.of(Cluster.of(nodes), Topology())


def node(name: str, gpus: int = 8, *, taints: tuple[Taint, ...] = (), cordoned: bool = False) -> Node:
    return Node(name, {"kind": name}, {GPU: gpus, MEMORY: 1 << 30}, taints, cordoned=cordoned)


MIXED = domains(
    node("n1", taints=(Taint("nvidia.com/gpu"),)),
    node("n2", taints=(Taint("nvidia.com/gpu"),)),
    node("n3", gpus=4),
    node("n4", cordoned=True),
)


def test_every_node_is_counted_once_for_the_first_thing_in_its_way() -> None:
    assert obstacles(EIGHT, Capacity.now(MIXED)) == (
        ("taint nvidia.com/gpu", 2),
        ("out of service", 1),
        ("too little nvidia.com/gpu", 1),
    )


def test_a_node_that_takes_the_task_is_not_counted() -> None:
    tolerant = Shape(requests=((GPU, 4),), tolerations=(Toleration("nvidia.com/gpu", "Exists"),))
    assert obstacles(tolerant, Capacity.now(MIXED)) == (("out of service", 1),)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (Shape(requests=((GPU, 16),)), "too little nvidia.com/gpu"),
        (Shape(requests=((MEMORY, 2 << 30),)), "too little memory"),
        (Shape(requests=(("example.com/none", 1),)), "too little example.com/none"),
        (Shape(selector=(("kind", "other"),)), "not selected"),
        (Shape(excluded=frozenset({"n1"})), "excluded"),
    ],
)
def test_each_kind_of_obstacle_has_its_own_name(shape: Shape, why: str) -> None:
    assert obstacles(shape, Capacity.now(domains(node("n1")))) == ((why, 1),)


def test_the_sentence_of_a_refusal_ends_in_the_count() -> None:
    gang = Gang("training", (), (Task("t0", EIGHT, 0), Task("t1", EIGHT, 1)))
    tainted = domains(node("n1", taints=(Taint("nvidia.com/gpu"),)), node("n2", gpus=4))
    refusal = decide(gang, Capacity.now(tainted), Capacity.empty(tainted)).refusal
    assert refusal is not None
    assert message(refusal, gang, tainted.topology, tainted.cluster) == (
        "the empty cluster holds only 0 of 2 tasks (1 node: taint nvidia.com/gpu; 1 node: too few GPUs)"
    )
