"""The one NVLink channel of a node, counted as a resource, so that whatever counts resources counts it as well.

A pod with a claim to a ComputeDomain takes the channel of its node, and the next such pod needs another node. No node
lists channels among its resources; they are known from the driver's slices where a source has them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.topology.cluster import GPU, Cluster

# The driver that hands channels out, and the name under which Coterie counts them.
DRIVER = "compute-domain.nvidia.com"
CHANNEL = f"{DRIVER}/channel"


def with_channels(cluster: Cluster) -> Cluster:
    """Return the cluster with a channel on every node with GPUs, unless its nodes say themselves which have one."""
    row = cluster.resource(CHANNEL)
    if row >= 0 and cluster.allocatable[row].any():
        return cluster
    if row < 0:
        row = len(cluster.resources)
        nothing = np.zeros((1, len(cluster)), dtype=np.int64)
        cluster = replace(
            cluster,
            resources=(*cluster.resources, CHANNEL),
            allocatable=np.concatenate([cluster.allocatable, nothing]),
            pod_requests=np.concatenate([cluster.pod_requests, np.zeros((1, len(cluster.pods)), dtype=np.int64)]),
        )
    taken = cluster.held(range(len(cluster.pods)))[row] > 0
    offered = cluster.allocatable.copy()
    offered[row] = (cluster.allocatable[cluster.resource(GPU)] > 0) | taken
    return replace(cluster, allocatable=offered)
