"""Why nodes cannot take a single task of a shape: the histogram behind a `no` that no topology could change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import PODS, Bools

# How a node without a free NVLink channel is counted.
NO_CHANNEL = f"too little {CHANNEL}"


def obstacles(shape: Shape, capacity: Capacity) -> tuple[tuple[str, int], ...]:
    """Return what keeps one task of a shape off each node that cannot take it, most frequent first.

    Each node is counted once, for the first of: taint, selector, exclusion, out of service, then resources by name,
    the NVLink channel last: a node that lacks more than that is not counted for it.
    """
    domains = capacity.domains
    cluster = domains.cluster
    fit = capacity.fit(shape)
    open_ = np.ones(len(domains), dtype=bool)
    found: Counter[str] = Counter()

    def count(what: str, bad: Bools) -> None:
        nonlocal open_
        if number := int((open_ & bad).sum()):
            found[what] += number
        open_ = open_ & ~bad

    bare = replace(shape, selector=(), affinity=(), excluded=frozenset())
    tainted = ~eligible(bare, cluster, lift_transient=False)[domains.order]
    for number, taints in enumerate(cluster.taint_sets):
        keys = ", ".join(sorted({taint.key for taint in taints if taint.effect != "PreferNoSchedule"}))
        count(f"taint {keys}", tainted & (cluster.taint_set[domains.order] == number))
    wanted = replace(shape, excluded=frozenset())
    count("not selected", ~eligible(wanted, cluster, lift_transient=False)[domains.order])
    count("excluded", ~eligible(shape, cluster, lift_transient=False)[domains.order])
    count("out of service", ~capacity.usable)
    for name, need in sorted((*shape.requests, (PODS, 1)), key=lambda asked: asked[0] == CHANNEL):
        row = cluster.resource(name)
        short = capacity.free[row] < need if row >= 0 else np.ones(len(domains), dtype=bool)
        count(f"too little {name}", short)
    count("not visible to the scheduler", fit.fits == 0)
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
