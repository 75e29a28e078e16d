"""The NVLink channel of a node, counted as a resource like any other.

A pod with a claim to a ComputeDomain takes the one channel of its node, so the next such pod needs another node. No
node lists channels among its resources; they are known from the driver's ResourceSlices where a source has them. Where
the objects behind a claim are not available, the claim is recognised by its name: Coterie's, Grove's, or that of the
driver's own examples.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from coterie.topology.cluster import GPU, Cluster

# The DRA driver that allocates channels, and the resource name under which Coterie counts them.
DRIVER = "compute-domain.nvidia.com"
CHANNEL = f"{DRIVER}/channel"
_NAMES = frozenset({"compute-domain", "compute-domain-channel", "mnnvl-claim"})
_TEMPLATES = re.compile(r"(.*-)?channel(-\d+)?")


def names_channel(claim: str, template: str) -> bool:
    """Return whether a claim is for a channel, judged by its name or by that of its template."""
    return claim in _NAMES or _TEMPLATES.fullmatch(template) is not None


def with_channels(cluster: Cluster) -> Cluster:
    """Return the cluster with one channel on every GPU node, unless its nodes state which of them have a channel."""
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
