"""The GB200 fleet has the features of an ordinary GPU cluster, and the example shows that fleet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from coterie.planning.inputs import read_snapshot
from coterie.topology.cluster import GPU
from tests.fleets import gb200

SNAPSHOT = Path(__file__).parents[2] / "examples/13-gb200-fleet/snapshot.json"


def test_the_example_is_the_generated_fleet(*, rewrite: bool) -> None:
    if rewrite:
        SNAPSHOT.write_text(gb200.text(), encoding="utf-8")

    assert SNAPSHOT.read_text(encoding="utf-8") == gb200.text()


def test_the_fleet_is_a_list_that_kubectl_could_have_printed() -> None:
    assert json.loads(gb200.text()) == gb200.dump()


def test_the_fleet_has_every_kind_of_node() -> None:
    cluster = read_snapshot(gb200.text().encode(), "snapshot.json").cluster
    gpus = cluster.allocatable[cluster.resource(GPU)]

    assert len(cluster) == 100
    assert sorted(np.unique(gpus).tolist()) == [0, 3, 4]
    assert [cluster.names[node] for node in np.flatnonzero(cluster.cordoned)] == list(gb200.CORDONED)
    assert [cluster.names[node] for node in np.flatnonzero(~cluster.ready)] == list(gb200.NOT_READY)
    assert {taint.key for taints in cluster.taint_sets for taint in taints} == {
        "nvidia.com/gpu",
        "dedicated",
        "node-role.kubernetes.io/control-plane",
        "node.kubernetes.io/unreachable",
    }


def test_cliques_share_a_uuid_inside_a_rack_and_a_suffix_across_racks() -> None:
    cliques = {node["metadata"]["labels"].get(gb200.CLIQUE) for node in gb200.nodes()} - {None}
    parts = [str(clique).rpartition(".") for clique in cliques]

    assert len(cliques) == 8
    assert len({uuid for uuid, _, _ in parts}) == 6
    assert {suffix for _, _, suffix in parts} == {"0", "1", "2"}
