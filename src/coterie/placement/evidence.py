"""Evidence for a refusal: how close the best domains come, and who holds what is missing there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from coterie.gang.tree import Shape, Task
from coterie.placement.bench import EVERYWHERE, Item, Region
from coterie.placement.budget import DEFAULT_BUDGET, Budget, Exhausted
from coterie.placement.capacity import Capacity
from coterie.placement.packing import Packer
from coterie.placement.refusal import Holder, Nearest
from coterie.topology.cluster import GPU, Ints
from coterie.topology.domains import Domains

SHOWN_DOMAINS = 3
SHOWN_HOLDERS = 5


def nearest(
    tasks: tuple[Task, ...],
    level: str | None,
    capacity: Capacity,
    *,
    short: bool = False,
    only: tuple[str, ...] | None = None,
) -> tuple[Nearest, ...]:
    """Return the domains of a level that hold most of these tasks, best first; without a level, the cluster.

    With `short`, only domains that lack something are looked at: where several groups compete, those are the ones in
    which a little more room would help. With `only`, that one domain is all there is to look at.
    """
    if level is None:
        return (Nearest((), _most(tasks, EVERYWHERE, capacity), len(tasks)),)
    index = capacity.domains.topology.index(level)
    estimate = _estimate(tasks, index, capacity)
    if short:
        estimate = np.where(estimate < len(tasks), estimate, -1)
    order = [one for one in np.argsort(-estimate, kind="stable")[:SHOWN_DOMAINS].tolist() if estimate[one] >= 0]
    values = capacity.domains.tiers[index].values
    if only is not None:
        order = [values.index(only)]
    found = [Nearest(values[one], _most(tasks, Region(index, (one,)), capacity), len(tasks)) for one in order]
    return tuple(sorted(found, key=lambda near: -near.fits))


def holders(
    level: str | None, best: tuple[Nearest, ...], now: Capacity, anchors: Mapping[str, str], lacking: str = GPU
) -> tuple[Holder, ...]:
    """Return who holds what is lacking in the best domains, those of the best domain first, most GPUs first.

    The gang's own running tasks, given by `anchors`, hold nothing against it.
    """
    domains = now.domains
    held: Counter[tuple[str, tuple[str, ...]]] = Counter()
    gpu, row = domains.cluster.resource(GPU), domains.cluster.resource(lacking)
    rank = {near.domain: place for place, near in enumerate(best)}
    own = {pod.owner for pod in domains.cluster.pods if pod.member and anchors.get(pod.member.task) == pod.node}
    for index, pod in enumerate(domains.cluster.pods):
        if pod.daemon or pod.owner in own or not domains.cluster.pod_requests[row, index]:
            continue
        domain = _domain(domains, level, domains.position[pod.node])
        if domain in rank:
            held[pod.owner or pod.name, domain] += int(domains.cluster.pod_requests[gpu, index])
    ordered = sorted(held.items(), key=lambda pair: (rank[pair[0][1]], -pair[1], pair[0][0]))
    return tuple(Holder(owner, gpus, domain) for (owner, domain), gpus in ordered)[:SHOWN_HOLDERS]


def _domain(domains: Domains, level: str | None, position: int) -> tuple[str, ...] | None:
    if level is None:
        return ()
    tier = domains.tiers[domains.topology.index(level)]
    number = int(tier.of[position])
    return tier.values[number] if number >= 0 else None


def _estimate(tasks: tuple[Task, ...], level: int, capacity: Capacity) -> Ints:
    """Bound the number of tasks each domain holds, shape by shape."""
    total = np.zeros(len(capacity.domains.tiers[level]), dtype=np.int64)
    for shape, count in Counter(task.shape for task in tasks).items():
        total += np.minimum(capacity.fit(shape).sums[level], count)
    return total


def _most(tasks: tuple[Task, ...], region: Region, capacity: Capacity) -> int:
    """Return how many of these tasks a region holds at once, counting the small ones first."""
    shapes = tuple(dict.fromkeys(task.shape for task in tasks))
    packer = Packer(capacity, shapes, Budget(DEFAULT_BUDGET // 10))
    if len(shapes) == 1:
        return min(len(tasks), packer.room(0, region))
    ordered = sorted(tasks, key=lambda task: _size(task.shape, capacity))
    low, high = 0, len(tasks)
    while low < high:
        middle = (low + high + 1) // 2
        counts = Counter(shapes.index(task.shape) for task in ordered[:middle])
        try:
            fits = packer.pack(tuple(sorted(Item(shape, region, pods) for shape, pods in counts.items()))) is not None
        except Exhausted:
            fits = False
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _size(shape: Shape, capacity: Capacity) -> float:
    """Return the greatest share of the whole cluster's free capacity that one task takes."""
    cluster = capacity.domains.cluster
    shares = [0.0]
    for name, amount in shape.requests:
        row = cluster.resource(name)
        whole = max(0.0, float(capacity.free[row].sum(dtype=np.float64))) if row >= 0 else 0.0
        shares.append(amount / (whole + 1.0))
    return max(shares)
