"""The nodes of a fleet: with or without GPUs, out of service, and with fewer GPUs than similar nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coterie.topology.check import LabelFinding
from coterie.topology.cluster import Bools, Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from coterie.topology.ranges import fold

# Labels that nodes of one kind share: the GPU found by feature discovery, and the machine type of a cloud.
_KIND_LABELS = ("nvidia.com/gpu.product", "node.kubernetes.io/instance-type")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Fleet:
    """The number of nodes, of GPU nodes, and of nodes out of service.

    A cordoned node that is not ready counts as not ready.
    """

    nodes: int
    with_gpus: int
    not_ready: tuple[str, ...]
    cordoned: tuple[str, ...]

    @staticmethod
    def of(cluster: Cluster) -> Fleet:
        """Return the counts of a cluster's nodes."""
        out = (~cluster.ready, cluster.cordoned & cluster.ready)
        return Fleet(len(cluster), int(cluster.has_gpus.sum()), *(_names(cluster, which) for which in out))


def short_of_gpus(cluster: Cluster, topology: Topology) -> Iterator[LabelFinding]:
    """Yield nodes that offer fewer GPUs than most nodes of their kind, by kind and number.

    Nodes whose GPUs are partitioned are left out: how many whole ones they offer says nothing.
    """
    gpus = cluster.gpus(cluster.allocatable)
    for kind, alike in _kinds(cluster, topology):
        which = alike & ~cluster.partitioned
        if not which.any():
            continue
        counted = Counter(gpus[which].tolist())
        usual, times = max(counted.items(), key=lambda pair: (pair[1], pair[0]))
        if times * 2 <= int(which.sum()):
            continue  # no number of GPUs is the usual one
        for number in sorted(each for each in counted if each < usual):
            nodes = _names(cluster, which & (gpus == number))
            offer = f"{number} GPU{'' if number == 1 else 's'}" if number else "no GPU"
            who = f"{nodes[0]} offers" if len(nodes) == 1 else f"{len(nodes)} nodes ({_cut(fold(nodes))}) offer"
            yield LabelFinding(
                "FewerGpus",
                "warning",
                "",
                f"{who} {offer}, where {times} of the {int(which.sum())} nodes {kind} offer {usual}",
                nodes,
                "Is a GPU broken, or the device plugin not running there?",
            )


def _kinds(cluster: Cluster, topology: Topology) -> Iterator[tuple[str, Bools]]:
    """Yield sets of nodes that should offer equal numbers of GPUs, with a description of what they share.

    Those are nodes with the same labels of their kind; of the others, GPU nodes in one domain of the finest level whose
    domains have several nodes.
    """
    codes = np.stack([cluster.column(label).codes for label in _KIND_LABELS])
    gpus = cluster.gpus(cluster.allocatable) > 0
    known = codes[0] >= 0
    # A machine type implies GPUs only where some machines of that type have GPUs.
    typed = np.unique(codes[1][gpus & (codes[1] >= 0)])
    known |= np.isin(codes[1], typed)
    for pair in np.unique(codes[:, known], axis=1).T if known.any() else ():
        labels = zip(_KIND_LABELS, pair.tolist(), strict=True)
        kind = " ".join(cluster.column(label).values[code] for label, code in labels if code >= 0)
        yield f"of kind {kind}", known & (codes == pair[:, None]).all(axis=0)
    domains = Domains.of(cluster, topology)
    if domains.neighbourhood < 0:
        return
    level, tier = topology.names[domains.neighbourhood], domains.tiers[domains.neighbourhood]
    for number, values in enumerate(tier.values):
        inside = np.zeros(len(cluster), dtype=bool)
        inside[domains.order[tier.start[number] : tier.end[number]]] = True
        inside &= gpus & ~known
        if inside.any():
            yield f"of {level} {'/'.join(values)}", inside


def _names(cluster: Cluster, which: Bools) -> tuple[str, ...]:
    return tuple(cluster.names[at] for at in np.flatnonzero(which))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
