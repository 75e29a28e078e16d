"""The KAI Topologies of pools that name a ClusterTopology: those it refers to, or that its controller made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from coterie.backends.kai.driver.objects import AnyObject
from coterie.config.configuration import Pool
from coterie.frontends.grove.topology import KAI, ClusterTopology
from coterie.frontends.grove.topology_set import known_topologies
from coterie.kube.api import Api
from coterie.kube.kinds import CLUSTER_TOPOLOGY, TOPOLOGY
from coterie.kube.reads import ObjectQuery, find, list_served
from coterie.sources.kubernetes_objects import TOPOLOGIES, topology_object


def with_external_topologies(api: Api, pools: Iterable[Pool]) -> list[Pool]:
    """Return the pools, those that name a ClusterTopology with the KAI Topology that has its levels, if any."""
    found = list(pools)
    if not any(pool.topology_name for pool in found):
        return found
    listed = list_served(api, ObjectQuery(CLUSTER_TOPOLOGY), TOPOLOGIES[CLUSTER_TOPOLOGY.name])
    objects = [
        {"apiVersion": CLUSTER_TOPOLOGY.api_version, **topology_object(item)}
        for item in (listed.items if listed else ())
    ]
    known = known_topologies(tuple(objects), "").found
    return [_resolved(api, pool, known) for pool in found]


def has_known_levels(pool: Pool) -> bool:
    """Return whether the levels of a pool are known; those of a ClusterTopology that was not read yet are not."""
    return pool.topology_name is None or bool(pool.topology.levels)


def _resolved(api: Api, pool: Pool, known: Mapping[str, ClusterTopology]) -> Pool:
    name = pool.topology_name or ""
    if name not in known:
        return pool
    if reference := known[name].reference(KAI):
        return replace(pool, kai_topology=reference)
    return replace(pool, kai_topology=name) if find(api, TOPOLOGY, name, AnyObject) is not None else pool
