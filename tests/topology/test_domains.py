"""Domains are tuples of label values; a slow dictionary implementation finds the same ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.topology.cluster import Cluster, Node
from coterie.topology.domains import Domains, is_null
from coterie.topology.levels import Topology

ZONE_RACK = Topology.of(("zone", "z"), ("rack", "r"))
DEEP = Topology.of(("zone", "z"), ("rack", "r"), ("clique", "nvidia.com/gpu.clique"))


def domains(topology: Topology, *labels: dict[str, str]) -> Domains:
    return Domains.of(Cluster.of(Node(f"n{i}", each) for i, each in enumerate(labels)), topology)


def members(found: Domains) -> list[dict[tuple[str, ...], set[str]]]:
    """Return per level the node names of each domain, through the slices."""
    return [
        {values: {found.name(at) for at in range(tier.start[i], tier.end[i])} for i, values in enumerate(tier.values)}
        for tier in found.tiers
    ]


def twin(nodes: list[Node], topology: Topology) -> list[dict[tuple[str, ...], set[str]]]:
    """Find the domains with dictionaries, node by node."""
    found: list[dict[tuple[str, ...], set[str]]] = [{} for _ in topology.levels]
    for node in nodes:
        values: tuple[str, ...] = ()
        for depth, level in enumerate(topology.levels):
            value = node.labels.get(level.label, "")
            if is_null(level.label, value):
                break
            values = (*values, value)
            found[depth].setdefault(values, set()).add(node.name)
    return found


def test_the_same_rack_value_in_two_zones_is_two_racks() -> None:
    found = domains(ZONE_RACK, {"z": "a", "r": "r1"}, {"z": "b", "r": "r1"})
    assert found.tiers[1].values == (("a", "r1"), ("b", "r1"))
    assert found.tiers[1].parent.tolist() == [0, 1]


@pytest.mark.parametrize(
    "pairs",
    [(("a.b", "c"), ("a", "b.c")), (("a", "b"), ("a-b", "c")), (("rack-1", "x"), ("rack-10", "x"))],
    ids=["dots", "dashes", "prefixes"],
)
def test_values_that_would_look_alike_when_joined_are_different_domains(pairs: tuple[tuple[str, str], ...]) -> None:
    found = domains(ZONE_RACK, *({"z": zone, "r": rack} for zone, rack in pairs))
    assert set(found.tiers[1].values) == set(pairs)


def test_a_node_without_a_label_is_in_no_finer_domain_and_stands_after_those_that_have_it() -> None:
    found = domains(DEEP, {"z": "a"}, {"z": "a", "r": "r1"}, {"r": "r1"}, {"z": "a", "nvidia.com/gpu.clique": "c"})
    assert [found.name(position) for position in range(4)] == ["n1", "n0", "n3", "n2"]
    assert members(found) == [{("a",): {"n0", "n1", "n3"}}, {("a", "r1"): {"n1"}}, {}]
    assert [found.values(position) for position in range(4)] == [
        {"zone": "a", "rack": "r1"},
        {"zone": "a"},
        {"zone": "a"},
        {},
    ]


def test_domains_stand_in_natural_order() -> None:
    found = domains(ZONE_RACK, {"z": "a10", "r": "x"}, {"z": "a9", "r": "x"}, {"z": "a1", "r": "x"})
    assert [values[0] for values in found.tiers[0].values] == ["a1", "a9", "a10"]


@pytest.mark.parametrize(
    ("label", "value", "null"),
    [
        ("r", "", True),
        ("r", "0", False),
        ("nvidia.com/gpu.clique", "0", True),
        ("nvidia.com/gpu.clique", "00000000-0000-0000-0000-000000000000", True),
        ("nvidia.com/gpu.clique", "00000000-0000-0000-0000-000000000000.32766", True),
        ("nvidia.com/gpu.clique", "7d37f4c2-0000-0000-0000-000000000000.0", False),
    ],
)
def test_empty_values_and_null_fabrics_name_no_domain(label: str, value: str, null: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_null(label, value) is null


def test_no_nodes_and_no_levels_are_no_trouble() -> None:
    assert len(domains(ZONE_RACK)) == 0
    assert domains(Topology(), {"z": "a"}).tiers == ()


_VALUE = st.sampled_from(["", "0", "a", "A", "a1", "a10", "a2", "a.b", "b"])
_LABELS = st.lists(st.dictionaries(st.sampled_from(["z", "r", "nvidia.com/gpu.clique"]), _VALUE), max_size=14)


@given(_LABELS, st.randoms(use_true_random=False))
def test_arrays_and_dictionaries_find_the_same_domains_in_any_order(
    labels: list[dict[str, str]], shuffler: random.Random
) -> None:
    nodes = [Node(f"n{i}", each) for i, each in enumerate(labels)]
    found = Domains.of(Cluster.of(nodes), DEEP)
    assert members(found) == twin(nodes, DEEP)
    assert sorted(found.order.tolist()) == list(range(len(nodes)))
    for depth, tier in enumerate(found.tiers):
        for position in range(len(found)):
            inside = [i for i in range(len(tier)) if tier.start[i] <= position < tier.end[i]]
            assert inside == ([tier.of[position]] if tier.of[position] >= 0 else [])
        if depth:
            above = found.tiers[depth - 1]
            assert [above.values[up] for up in tier.parent] == [values[:-1] for values in tier.values]
    shuffler.shuffle(nodes)
    again = Domains.of(Cluster.of(nodes), DEEP)
    assert [tier.values for tier in again.tiers] == [tier.values for tier in found.tiers]
    assert [again.name(i) for i in range(len(again))] == [found.name(i) for i in range(len(found))]
