"""The rules of levels: 1 to 16, names and labels once each and well formed, hostname last."""

from __future__ import annotations

import pytest

from coterie.topology.levels import HOSTNAME, Topology, label_fault, level_faults

ZONE, RACK = ("zone", "topology.kubernetes.io/zone"), ("rack", "topology.kubernetes.io/rack")

FAULTS: list[tuple[str, list[tuple[str, str]], list[str]]] = [
    ("good", [ZONE, RACK, ("host", HOSTNAME)], []),
    ("none", [], ["at least one level"]),
    ("16", [(f"l{i}", f"label{i}") for i in range(16)], []),
    ("17", [(f"l{i}", f"label{i}") for i in range(17)], ["at most 16 levels, not 17"]),
    ("a name twice", [ZONE, ("zone", "other")], ['level "zone" is defined twice']),
    ("a label twice", [ZONE, ("row", ZONE[1])], ['used by two levels, "zone" and "row"']),
    ("hostname first", [("host", HOSTNAME), ZONE], ["must be the last level"]),
    ("bad names", [("", "a"), ("a b", "b"), ("-x", "c"), ("x" * 64, "d")], ["is not 1 to 63"] * 4),
    (
        "all at once",
        [("a b", "x/"), ZONE, ZONE],
        ["is not 1 to 63", "follows the slash", "defined twice", "two levels"],
    ),
]


@pytest.mark.parametrize(("pairs", "expected"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_each_breach_of_the_level_rules_is_one_fault(pairs: list[tuple[str, str]], expected: list[str]) -> None:
    found = [fault.message for fault in level_faults(pairs)]
    assert len(found) == len(expected)
    assert all(part in message for part, message in zip(expected, found, strict=True))


LABELS: list[tuple[str, str]] = [
    ("rack", ""),
    ("example.com/rack", ""),
    ("a" * 63, ""),
    ("a" * 64, "64 characters"),
    ("x/" + "a" * 63, ""),
    ("p" * 253 + "/a", ""),
    ("p" * 254 + "/a", "254 characters"),
    ("", "it is empty"),
    ("/a", "precedes the slash"),
    ("a/", "follows the slash"),
    ("Example.com/a", "lower-case DNS name"),
    ("a/b/c", "lower-case DNS name"),
    ("-a", "begins and ends"),
    ("a.", "begins and ends"),
    ("a b", "may hold"),
]


@pytest.mark.parametrize(("label", "problem"), LABELS)
def test_a_label_follows_kubernetes_syntax(label: str, problem: str) -> None:
    found = label_fault(label)
    assert problem in found
    assert bool(found) == bool(problem)


def test_a_topology_finds_levels_by_name() -> None:
    topology = Topology.of(ZONE, RACK)
    assert topology.names == ("zone", "rack")
    assert (topology.index("rack"), topology.label("rack")) == (1, RACK[1])
