"""Fragmentation of free GPUs: the share of the best possible gang that does not fit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coterie.inspection.fragmentation import fragmentation
from coterie.topology.cluster import GPU, Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

RACKS = Topology.of(("rack", "rack"))


def divided(held: Mapping[str, int], topology: Topology = RACKS, out: str = "") -> Domains:
    """Return two racks of four nodes with four GPUs each, of which pods hold some."""
    nodes = [
        Node(f"{rack}{n}", {"rack": rack}, {GPU: 4, "pods": 10}, cordoned=f"{rack}{n}" == out)
        for rack in "ab"
        for n in range(4)
    ]
    pods = [Pod(f"on-{node}", node, {GPU: gpus}) for node, gpus in held.items()]
    return Domains.of(Cluster.of(nodes, pods), topology)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, 0.0),
        ({"a0": 4, "a1": 4, "a2": 4, "a3": 4}, 0.0),  # one whole rack is free
        ({"a0": 4, "a1": 4, "b0": 4, "b1": 4}, 0.5),  # the GPUs of a rack, but in two halves
        ({f"{rack}{n}": 2 for rack in "ab" for n in range(4)}, 1.0),  # on no node are all GPUs free
        ({f"{rack}{n}": 4 for rack in "ab" for n in range(4)}, None),
        ({f"{rack}{n}": 4 for rack in "ab" for n in range(4)} | {"a0": 2}, None),
    ],
)
def test_scattered_free_gpus_are_fragmented(held: Mapping[str, int], expected: float | None) -> None:
    assert fragmentation(divided(held)) == expected


def test_nodes_out_of_service_have_nothing_free() -> None:
    assert fragmentation(divided({f"a{n}": 4 for n in range(4)}, out="b0")) == 0.0
    assert fragmentation(divided({"a0": 4}, out="b0")) == 0.25


def test_a_pool_without_levels_is_one_domain() -> None:
    none = Topology.of()
    assert fragmentation(divided({"a0": 4, "b0": 4}, none)) == 0.0
    assert fragmentation(divided({"a0": 2, "b0": 2}, none)) == pytest.approx(1 / 7)


def test_nodes_without_gpus_have_no_fragmentation() -> None:
    assert fragmentation(Domains.of(Cluster.of([Node("n", {"rack": "a"}, {"pods": 10})]), RACKS)) is None
