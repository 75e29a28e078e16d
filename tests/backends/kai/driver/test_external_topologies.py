"""The pools of a driver that names ClusterTopologies."""

from __future__ import annotations

from dataclasses import replace

from coterie.backends.kai.driver.external_topologies import has_known_levels
from coterie.topology.levels import Topology
from tests.backends.kai.builders import POOL


def test_a_pool_waits_for_the_levels_of_its_cluster_topology() -> None:
    flat = replace(POOL, topology=Topology(), topology_name=None)
    assert has_known_levels(flat)
    assert not has_known_levels(replace(flat, topology_name="site"))
    assert has_known_levels(replace(POOL, topology_name="site"))
