"""Tolerations implied by requests, and tolerations that a remedy of a refusal adds."""

from __future__ import annotations

import pytest

from coterie.gang.tolerations import with_resource_tolerations, without_assumed
from coterie.gang.tree import Gang, Shape, Task, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from coterie.placement.whatif import Tolerate
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import GPU, Cluster, Node, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology


def assumed(key: str) -> Toleration:
    return Toleration(key, "Exists", effect="NoSchedule", assumed=True)


@pytest.mark.parametrize(
    ("resource", "tolerated"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("example.com/device", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/thing", False),
        ("node.kubernetes.io/thing", False),
        ("requests.nvidia.com/gpu", False),
        (CHANNEL, False),
    ],
)
def test_a_task_tolerates_the_taint_of_an_extended_resource(resource: str, *, tolerated: bool) -> None:
    """The rule of Kubernetes' ExtendedResourceToleration; a channel is Coterie's own way of counting claims."""
    found = with_resource_tolerations(Shape(((resource, 1),)))

    assert found.tolerations == ((assumed(resource),) if tolerated else ())


@pytest.mark.parametrize(
    ("own", "enough"),
    [
        (Toleration(GPU, "Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(GPU, "Exists", effect="NoSchedule"), True),
        (Toleration(GPU, "Exists", effect="NoExecute"), False),
        (Toleration(GPU, "Equal", "present"), False),
    ],
)
def test_nothing_is_assumed_where_what_was_written_is_enough(own: Toleration, *, enough: bool) -> None:
    found = with_resource_tolerations(Shape(((GPU, 1),), tolerations=(own,)))

    assert found.tolerations == ((own,) if enough else (own, assumed(GPU)))
    assert without_assumed(found).tolerations == (own,)


def test_only_the_effect_no_schedule_is_tolerated() -> None:
    assert _placed(with_resource_tolerations(Shape(((GPU, 1),))), Taint(GPU, "present", "NoSchedule"))
    assert not _placed(with_resource_tolerations(Shape(((GPU, 1),))), Taint(GPU, "present", "NoExecute"))


@pytest.mark.parametrize(
    ("taints", "offered"),
    [
        ([("x",)], [("x",)]),
        ([("x", "y")], [("x", "y")]),
        ([("x",), ("y",)], [("x",), ("y",)]),
        ([("node.kubernetes.io/unreachable",)], []),
        ([("x",), ("x", "y")], [("x",)]),
    ],
    ids=["one", "two on one node", "either of two", "one that Kubernetes lifts itself", "fewer are enough"],
)
def test_a_way_out_tolerates_as_few_taints_as_do(taints: list[tuple[str, ...]], offered: list[tuple[str, ...]]) -> None:
    cluster = Cluster.of(
        [Node(f"n{number}", {}, {GPU: 4, "pods": 110}, tuple(map(Taint, keys))) for number, keys in enumerate(taints)]
    )
    domains = Domains.of(cluster, Topology())
    gang = Gang("g", tasks=(Task("t", Shape(((GPU, 4),))),))

    refusal = decide(gang, Capacity.now(domains), Capacity.empty(domains)).refusal

    assert refusal is not None
    assert [way.change.keys for way in refusal.ways_out if isinstance(way.change, Tolerate)] == offered


def test_taints_of_several_kinds_are_tolerated_together_where_no_kind_is_enough() -> None:
    cluster = Cluster.of(
        [Node(key, {}, {GPU: 4, "pods": 110}, (Taint(key),) if key in "xy" else ()) for key in ("x", "y", "free")]
    )
    domains = Domains.of(cluster, Topology())
    gang = Gang("g", tasks=tuple(Task(f"t{rank}", Shape(((GPU, 4),)), rank) for rank in range(3)))

    refusal = decide(gang, Capacity.now(domains), Capacity.empty(domains)).refusal

    assert refusal is not None
    assert [way.change.keys for way in refusal.ways_out if isinstance(way.change, Tolerate)] == [("x", "y")]


def _placed(shape: Shape, taint: Taint) -> bool:
    domains = Domains.of(Cluster.of([Node("n", {}, {GPU: 1, "pods": 110}, (taint,))]), Topology())
    found = decide(Gang("g", tasks=(Task("t", shape),)), Capacity.now(domains), Capacity.empty(domains))
    return found.found is not None
