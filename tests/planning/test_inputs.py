"""Files of the wrong kind are recognised, and levels that merge domains are reported."""

from __future__ import annotations

import pytest

from coterie.config.configuration import Pool
from coterie.errors import SpecErrors
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Shape
from coterie.planning.inputs import read_snapshot
from coterie.planning.load import read_documents
from coterie.planning.plan import Planner
from coterie.planning.workload import Workload
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.levels import Topology

ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (b"version: 2\nworkflow:\n  name: {{ x }}\n", "this is a workflow, not a cluster", "coterie plan FILE"),
        (b"", "it is empty", "The command before the pipe may have failed"),
        (b" \n", "it is empty", "The command before the pipe may have failed"),
    ],
)
def test_what_is_no_cluster_is_named(data: bytes, words: str, hint: str) -> None:
    with pytest.raises(SpecErrors) as error:
        read_snapshot(data, "standard input")
    assert words in error.value.faults[0].message
    assert hint in error.value.faults[0].hint


def test_a_snapshot_is_not_taken_for_a_workflow() -> None:
    with pytest.raises(SpecErrors) as error:
        read_documents(b'{\n  "apiVersion": "v1",\n  "kind": "List", "items": []}', "s.json")
    assert [fault.message for fault in error.value.faults] == ["there is no workload in it, only an empty list"]


def notice_codes(topology: Topology, racks: str) -> list[str]:
    pairs = zip("ab", racks, strict=True)
    nodes = [Node(f"n{zone}", {ZONE: zone, RACK: rack}, {GPU: 8}) for zone, rack in pairs]
    asked = [RequestedTask("t0", Shape(((GPU, 8),)), (TaskRequirement("rack"),))]
    workload = Workload("w", "Workflow", Pool.for_levels(topology), (build("g", asked, topology),))
    return [notice.code for notice in Planner(Cluster.of(nodes)).plan(workload).notices]


def test_a_rack_name_used_in_two_zones_is_told_when_zones_are_not_among_the_levels() -> None:
    assert notice_codes(Topology.of(("rack", RACK)), "11") == ["DomainSpansZones"]
    assert notice_codes(Topology.of(("rack", RACK)), "12") == []
    assert "DomainSpansZones" not in notice_codes(Topology.of(("zone", ZONE), ("rack", RACK)), "11")
