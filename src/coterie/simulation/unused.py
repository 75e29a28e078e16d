"""The GPU nodes that a replay leaves out, and the reasons."""

from __future__ import annotations

from collections import Counter

from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible, untolerated
from coterie.simulation.rule import Rule
from coterie.topology.cluster import GPU, Bools


def unused_nodes(rule: Rule, capacity: Capacity) -> tuple[tuple[str, int], ...]:
    """Return the reasons why GPU nodes take no pod of any job, with their counts, most frequent first.

    A node counts once: for GPUs of another kind than jobs ask for, a taint, the selector of the pool, a cordon, not
    being ready, or a missing label. Nodes whose GPUs are in use are not left out.
    """
    domains = capacity.domains
    cluster, shape = domains.cluster, rule.shape(1)
    found: Counter[str] = Counter()
    left = cluster.has_gpus[domains.order]

    def count(cause: str, bad: Bools) -> None:
        nonlocal left
        found[cause] += int((left & bad).sum())
        left = left & ~bad

    count("with other GPUs", cluster.allocatable[cluster.resource(GPU)][domains.order] <= 0)
    for number, taints in enumerate(cluster.taint_sets):
        lasting = sorted({taint.key for taint in untolerated(shape.tolerations, taints) if not taint.transient})
        if lasting:
            count(f"with the taint {', '.join(lasting)}", cluster.taint_set[domains.order] == number)
    count("not ready", ~cluster.ready[domains.order])
    count("cordoned", cluster.cordoned[domains.order])
    count("not in the pool", ~eligible(shape, cluster, lift_transient=False)[domains.order])
    if rule.level is not None:
        count(f"in no {rule.level}", domains.tiers[domains.topology.index(rule.level)].of < 0)
    count("hidden from KAI because a level's label is missing", ~capacity.usable)
    return tuple(sorted(((cause, int(n)) for cause, n in found.items() if n), key=lambda pair: (-pair[1], pair[0])))
