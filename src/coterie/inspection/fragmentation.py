"""The fragmentation of free GPUs: by how much the largest gang that fits falls short of the largest possible one."""

from __future__ import annotations

import numpy as np

from coterie.topology.domains import Domains


def fragmentation(domains: Domains) -> float | None:
    """Return the share of the best possible gang that does not fit now, None when less than one node's GPUs are free.

    The gang has pods as large as the usual node, in one domain of the finest level whose domains have several nodes.
    The best possible one is what the free GPUs would hold if they were contiguous, but no more than the usual domain.
    Only GPUs are counted.
    """
    size = domains.node_gpus
    if not size:
        return None
    cluster = domains.cluster
    offered = cluster.gpus(cluster.allocatable)
    idle = (offered - cluster.gpus(cluster.held(range(len(cluster.pods))))).clip(min=0)
    free = np.where(cluster.ready & ~cluster.cordoned, idle, 0)[domains.order]
    room = free // size
    if domains.neighbourhood < 0:
        largest, usual = int(room.sum()), int(offered.sum())
    else:
        tier = domains.tiers[domains.neighbourhood]
        largest = int(tier.sums(room).max(initial=0))
        known, counts = np.unique(tier.sums(offered[domains.order]), return_counts=True)
        usual = int(known[::-1][counts[::-1].argmax()])
    best = min(int(free.sum()), usual) // size
    return max(0.0, 1 - largest / best) if best else None
