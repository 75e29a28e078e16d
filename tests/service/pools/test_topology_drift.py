"""The drift of a scheduler's topology, as a service shows it for a pool."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.config.configuration import Pool
from coterie.service.pools.topology_drift import topology_drift
from coterie.sources import Snapshot
from coterie.topology.cluster import Cluster, Node
from coterie.topology.levels import Topology

ZONE = "topology.kubernetes.io/zone"
LEVELS = Topology.of(("zone", ZONE))
POOL = Pool("main", backend="hall", scheduler="kai", topology=LEVELS, topology_name="fleet")


def declared(reference: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"levels": [{"domain": "zone", "key": ZONE}]}
    if reference:
        spec["schedulerReferences"] = [{"schedulerName": "kai-scheduler", "reference": reference}]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "fleet", "uid": "u"},
        "spec": spec,
    }


def of_kai(name: str, label: str = ZONE) -> dict[str, Any]:
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": label}]},
    }


@pytest.mark.parametrize(
    ("objects", "shown"),
    [
        pytest.param([declared()], None, id="no operator, and no topologies"),
        pytest.param([declared(), of_kai("others")], None, id="no operator, and topologies of others"),
        pytest.param([declared("theirs"), of_kai("theirs")], [("theirs", True)], id="a reference in step"),
        pytest.param(
            [declared("theirs"), of_kai("theirs", "rack")], [("theirs", False)], id="a reference that differs"
        ),
        pytest.param([declared("theirs"), of_kai("others")], [("theirs", False)], id="a reference that is missing"),
    ],
)
def test_a_missing_topology_of_the_same_name_is_no_drift_and_a_missing_reference_is(
    objects: list[dict[str, Any]], shown: list[tuple[str, bool]] | None
) -> None:
    snapshot = Snapshot(Cluster.of([Node("n1", {ZONE: "a"}, {})]), objects=tuple(objects), topologies={"fleet": LEVELS})
    found = topology_drift(POOL, snapshot)
    assert (None if found is None else [(each["reference"], each["in_sync"]) for each in found]) == shown
