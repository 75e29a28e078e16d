"""Why nodes cannot take a single task of a shape: the histogram behind a `no` that no topology could change."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible, untolerated
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import GPU, PODS, Bools
from coterie.topology.podaffinity import counts_neighbours

# How a node without a free NVLink channel is counted.
NO_CHANNEL = f"too little {CHANNEL}"
CORDONED = "cordoned"
NOT_READY = "not ready"
FULL = "full"

# What is told apart where nodes are counted one kind at a time, and is one thing where it explains a refusal.
_COARSER = {CORDONED: "out of service", NOT_READY: "out of service", FULL: f"too little {GPU}"}


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """What keeps one task of a shape off each node: `names[codes[position]]`, or nothing where the code is -1."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]

    def counted(self) -> Counter[str]:
        """Return how many nodes each cause keeps it off."""
        found: Counter[str] = Counter()
        there, numbers = np.unique(self.codes[self.codes >= 0], return_counts=True)
        for one, number in zip(there.tolist(), numbers.tolist(), strict=True):
            found[self.names[one]] += number
        return found


def causes(shape: Shape, capacity: Capacity) -> Causes:
    """Return what keeps one task of a shape off each node that cannot take it.

    That is the first of: taint, selector, exclusion, out of service, all GPUs in use, then resources by name, the
    NVLink channel last: a node that lacks more than that is not counted for it.
    """
    domains = capacity.domains
    cluster = domains.cluster
    names: list[str] = []
    codes = np.full(len(domains), -1, dtype=np.int32)

    def count(what: str, bad: Bools) -> None:
        codes[bad & (codes < 0)] = len(names)
        names.append(what)

    bare = replace(shape, selector=(), affinity=(), excluded=frozenset())
    tainted = ~eligible(bare, cluster, lift_transient=False)[domains.order]
    for number, taints in enumerate(cluster.taint_sets):
        keys = ", ".join(sorted({taint.key for taint in untolerated(shape.tolerations, taints)}))
        count(f"taint {keys}", tainted & (cluster.taint_set[domains.order] == number))
    wanted = replace(shape, excluded=frozenset())
    count("not selected", ~eligible(wanted, cluster, lift_transient=False)[domains.order])
    count("excluded", ~eligible(shape, cluster, lift_transient=False)[domains.order])
    count(CORDONED, ~capacity.usable & cluster.cordoned[domains.order])
    count(NOT_READY, ~capacity.usable)
    if need := shape.amount(GPU):
        row = cluster.resource(GPU)
        count(FULL, (capacity.free[row] <= 0) & (cluster.allocatable[row][domains.order] >= need))
    for name, need in sorted((*shape.requests, (PODS, 1)), key=lambda asked: _last(asked[0])):
        row = cluster.resource(name)
        short = capacity.free[row] < need if row >= 0 else np.ones(len(domains), dtype=bool)
        count(f"too little {name}", short)
    count("not visible to the scheduler", capacity.fit(shape).fits == 0)
    return Causes(tuple(names), codes)


def _last(resource: str) -> tuple[bool, bool]:
    """Sort key that puts what is no resource of a node behind all that is: neighbours, then the channel."""
    return resource == CHANNEL, counts_neighbours(resource)


def obstacles(shape: Shape, capacity: Capacity) -> tuple[tuple[str, int], ...]:
    """Return what keeps one task of a shape off each node that cannot take it, most frequent first."""
    found: Counter[str] = Counter()
    for what, number in causes(shape, capacity).counted().items():
        found[_COARSER.get(what, what)] += number
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
