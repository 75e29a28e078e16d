"""The agreement of the ClusterTopology that a pool's levels come from with the topologies of schedulers."""

from __future__ import annotations

from typing import Any

from coterie.config.configuration import Pool
from coterie.frontends.grove.drift import drift_of
from coterie.frontends.grove.kai_topology import read_kai_topologies
from coterie.frontends.grove.topology_set import known_topologies
from coterie.sources import Snapshot

Json = dict[str, Any]


def topology_drift(pool: Pool, snapshot: Snapshot | None) -> list[Json] | None:
    """Return how each scheduler's topology compares with the pool's ClusterTopology; None where none is compared.

    A snapshot without any topology of a scheduler shows no drift, since it may not have listed them. Neither does a
    missing topology of the same name: where no operator makes it, the pool uses a topology of the service.
    """
    if snapshot is None or pool.topology_name is None or pool.topology_name not in snapshot.topologies:
        return None
    kai, _ = read_kai_topologies(snapshot.objects)
    found = known_topologies(snapshot.objects, "").found.get(pool.topology_name)
    if found is None or not kai:
        return None
    external = {each.name for each in found.references}
    return [
        {
            "scheduler": entry.scheduler,
            "reference": entry.reference,
            "in_sync": entry.in_sync,
            "message": entry.message,
        }
        for entry in drift_of(found, kai).entries
        if entry.reference in kai or entry.reference in external
    ] or None
