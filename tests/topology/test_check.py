"""The label check reports real findings only, independent of order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.topology.check import LabelFinding, check
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.levels import HOSTNAME, Topology

Z, R, C = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "nvidia.com/gpu.clique"
ZONE, RACK, CLIQUE, HOST = ("zone", Z), ("rack", R), ("gpu-clique", C), ("host", HOSTNAME)
NULL = "00000000-0000-0000-0000-000000000000.0"


def look(levels: list[tuple[str, str]], *labels: dict[str, str]) -> tuple[LabelFinding, ...]:
    cluster = Cluster.of(Node(f"n{i}", each) for i, each in enumerate(labels, 1))
    return check(cluster, Topology.of(*levels))


def zr(*pairs: str) -> list[dict[str, str]]:
    """Labels of nodes written as "zone/rack"; an empty part is no label."""
    split = [pair.split("/") for pair in pairs]
    return [{key: value for key, value in ((Z, zone), (R, rack)) if value} for zone, rack in split]


def codes(findings: tuple[LabelFinding, ...]) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.level) for finding in findings]


GOOD = zr("a/r1", "a/r1", "a/r2", "a/r2", "b/r3", "b/r3", "b/r4", "b/r4")

CASES: list[tuple[str, list[tuple[str, str]], list[dict[str, str]], list[tuple[str, str, str]], list[str]]] = [
    # what, levels, labels, (code, severity, level) of each finding, parts of their texts
    ("nested levels", [ZONE, RACK], GOOD, [], []),
    (
        "every node its own host",
        [ZONE, HOST],
        [{Z: zone, HOSTNAME: f"h{i}"} for i, zone in enumerate("aabb")],
        [],
        [],
    ),
    ("a clique that is a rack", [RACK, CLIQUE], [{R: f"r{i // 2}", C: f"u.{i // 2}"} for i in range(8)], [], []),
    ("no nodes", [ZONE, RACK], [], [], []),
    ("one node", [ZONE, RACK], zr("a/r1"), [], []),
    (
        "a separator mistaken",
        [ZONE, ("gpu-clique", "nvidia.com/gpu-clique")],
        [{Z: zone, C: zone, "nvidia.com/gpu.count": "8"} for zone in "aabb"],
        [("LabelOnNoNode", "error", "gpu-clique"), ("HiddenFromScheduler", "info", "")],
        [
            'no node has the label "nvidia.com/gpu-clique" Did you mean "nvidia.com/gpu.clique"?',
            "4 of 4 nodes (n[1-4])",
        ],
    ),
    (
        "another prefix",
        [ZONE],
        [{"failure-domain.beta.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "b"}] * 2,
        [("LabelOnNoNode", "error", "zone"), ("HiddenFromScheduler", "info", "")],
        ['Did you mean "failure-domain.beta.kubernetes.io/zone"?', "2 of 2"],
    ),
    (
        "nothing alike",
        [ZONE],
        [{"topology.kubernetes.io/region": "b"}] * 2,
        [("LabelOnNoNode", "error", "zone"), ("HiddenFromScheduler", "info", "")],
        ["Label the nodes", "2 of 2"],
    ),
    (
        "missing on some",
        [ZONE, RACK],
        [*GOOD, *zr("a/", "b/")],
        [("LabelMissing", "warning", "rack"), ("HiddenFromScheduler", "info", "")],
        [f'the label "{R}" is missing on 2 of 10 nodes (n[9-10])', "such as KAI: 2 of 10 nodes (n[9-10])"],
    ),
    (
        "finer without coarser",
        [ZONE, RACK],
        [*GOOD, *zr("/r4")],
        [
            ("LabelMissing", "warning", "zone"),
            ("LabelGap", "warning", "zone"),
            ("HiddenFromScheduler", "info", ""),
        ],
        ["1 of 9 nodes (n9)", 'nodes with "rack" but without "zone"', "1 of 9"],
    ),
    (
        "empty on some",
        [ZONE, RACK],
        [*GOOD, {Z: "a", R: ""}],
        [("LabelEmpty", "warning", "rack"), ("HiddenFromScheduler", "info", "")],
        [f'the label "{R}" is empty, and so counts as missing, on 1 of 9 nodes (n9)', "1 of 9"],
    ),
    (
        "null fabric everywhere",
        [CLIQUE],
        [{C: NULL}, {C: "0"}],
        [("LabelNull", "error", "gpu-clique"), ("HiddenFromScheduler", "info", "")],
        ["names no fabric", "2 of 2"],
    ),
    (
        "a typing slip on a minority",
        [ZONE, RACK],
        [*GOOD, {Z: "b", "topology.kubernetes.io/rak": "r4"}],
        [
            ("LabelMissing", "warning", "rack"),
            ("NearMissLabel", "warning", "rack"),
            ("HiddenFromScheduler", "info", ""),
        ],
        ["n9", f'"topology.kubernetes.io/rak" is set instead of "{R}" on 1 of 9 nodes (n9)', "n9"],
    ),
    (
        "a similar label that has its own meaning",
        [ZONE, RACK],
        [*({**each, f"{R}s": "x"} for each in GOOD), {Z: "b", f"{R}s": "x"}],
        [("LabelMissing", "warning", "rack"), ("HiddenFromScheduler", "info", "")],
        ["n9", "n9"],
    ),
    (
        "a rack in two zones",
        [ZONE, RACK],
        [*GOOD, *zr("b/r1")],
        [("NotNested", "warning", "rack")],
        ['rack "r1" lies in zone "a" (n[1-2]) and zone "b" (n9)'],
    ),
    (
        "racks numbered within each zone",
        [ZONE, RACK],
        zr("a/r1", "a/r1", "a/r2", "a/r2", "b/r1", "b/r1", "b/r2", "b/r2"),
        [("NotNested", "info", "rack")],
        ['every "zone" has the same values of "rack"'],
    ),
    (
        "one rack value in both zones",
        [ZONE, RACK],
        zr("a/r1", "a/r1", "b/r1", "b/r1"),
        [("NotNested", "warning", "rack")],
        ['zone "a" (n[1-2]) and zone "b" (n[3-4])'],
    ),
    (
        "finest first",
        [RACK, ZONE],
        GOOD,
        [("OrderReversed", "error", "zone")],
        ['each of the 4 values of "rack" lies in one of the 2 of "zone" List "zone" before "rack".'],
    ),
    (
        "finest first, with a single zone",
        [RACK, ZONE],
        zr("a/r1", "a/r1", "a/r2", "a/r2"),
        [("OrderReversed", "error", "zone")],
        ['List "zone" before "rack"'],
    ),
    (
        "finest first, by structure alone",
        [("x", "x"), ("y", "y")],
        [{"x": f"{i // 2}", "y": f"{i // 4}"} for i in range(8)],
        [("OrderReversed", "error", "y")],
        ['List "y" before "x"'],
    ),
    (
        "case twins",
        [ZONE, RACK],
        zr("a/Rack1", "a/rack1", "a/rack1", "b/rack2", "b/rack2", "b/r3", "b/r3", "a/Rack1"),
        [("CaseTwins", "warning", "rack")],
        ['"Rack1" and "rack1" are different domains of "rack" that differ only in case'],
    ),
    (
        "one domain",
        [ZONE, RACK],
        zr("a/r1", "a/r1", "a/r2", "a/r2"),
        [("SingletonLevel", "info", "zone")],
        ['"zone" has one domain only, "a"'],
    ),
    (
        "two nodes of one hostname",
        [HOST],
        [{HOSTNAME: "h1"}, {HOSTNAME: "h1"}, {HOSTNAME: "h2"}],
        [("HostnameShared", "warning", "host")],
        ['count as one "host": "h1" on 2 of 3 nodes (n[1-2])'],
    ),
    (
        "one node in each domain",
        [ZONE, RACK],
        zr("a/r1", "a/r2", "b/r3", "b/r4"),
        [("SingletonLevel", "info", "rack")],
        ['each of the 4 domains of "rack" has one node only'],
    ),
]


@pytest.mark.parametrize(
    ("levels", "labels", "expected", "texts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_odd_about_labels_is_found(
    levels: list[tuple[str, str]],
    labels: list[dict[str, str]],
    expected: list[tuple[str, str, str]],
    texts: list[str],
) -> None:
    found = look(levels, *labels)
    assert codes(found) == expected
    for finding, text in zip(found, texts, strict=True):
        assert text in f"{finding.message} {finding.hint}"


def test_nodes_without_gpus_need_no_fabric_label() -> None:
    nodes = [Node(f"g{i}", {C: f"u.{i // 2}"}, {GPU: 4}) for i in range(4)]
    found = check(Cluster.of([*nodes, Node("control")]), Topology.of(CLIQUE))
    assert codes(found) == [("LabelMissing", "info", "gpu-clique"), ("HiddenFromScheduler", "info", "")]


def test_only_a_few_of_many_cases_are_written_out_but_all_nodes_are_named() -> None:
    labels = zr(*(f"a/r{i}" for i in range(9)), *(f"b/r{i}" for i in range(8)))
    finding = next(each for each in look([ZONE, RACK], *labels) if each.code == "NotNested")
    assert finding.message.count(" lies in ") == 3
    assert finding.message.endswith("; and 5 more")
    assert len(finding.nodes) == 16


_VALUE = st.sampled_from(["", "a", "A", "b", "c1", "c2", NULL, "0"])
_LABELS = st.dictionaries(st.sampled_from([Z, R, C, R + "s", "nvidia.com/gpu-clique"]), _VALUE)


@given(st.lists(_LABELS, max_size=12), st.permutations([ZONE, RACK, CLIQUE]), st.randoms(use_true_random=False))
def test_findings_are_the_same_for_any_order_of_the_nodes(
    labels: list[dict[str, str]], levels: list[tuple[str, str]], shuffler: random.Random
) -> None:
    nodes = [Node(f"n{i}", each) for i, each in enumerate(labels)]
    topology = Topology.of(*levels)
    found = check(Cluster.of(nodes), topology)
    shuffler.shuffle(nodes)
    assert check(Cluster.of(nodes), topology) == found
    names = {node.name for node in nodes}
    assert all(set(finding.nodes) <= names and finding.message for finding in found)


def test_levels_named_backwards_are_found_even_where_every_zone_has_the_same_racks() -> None:
    zone, rack = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
    nodes = [Node(f"n{z}{r}", {zone: z, rack: r}) for z in "ab" for r in "12"]
    found = check(Cluster.of(nodes), Topology.of(("rack", rack), ("zone", zone)))
    assert ("OrderReversed", "error", "zone") in [(one.code, one.severity, one.level) for one in found]
    right = check(Cluster.of(nodes), Topology.of(("zone", zone), ("rack", rack)))
    assert "OrderReversed" not in {one.code for one in right}
