"""Three placement policies that see the same cluster and the same layout.

A policy is a function: it returns the position of every pod, or the reason why there is none. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum

import numpy as np

from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.simulation.kueue import kueue
from coterie.simulation.rule import Layout
from coterie.topology.cluster import GPU, PODS, Ints
from coterie.topology.domains import Domains, Tier

Spots = tuple[int, ...]


class PolicyRefusal(Enum):
    """The reason why a job is not placed."""

    WAITS = "waits"
    UNDECIDED = "undecided"


Policy = Callable[[Layout, Capacity], Spots | PolicyRefusal]


def coterie(layout: Layout, capacity: Capacity) -> Spots | PolicyRefusal:
    """Return the engine's placement, with the fewest missed preferences and the least fragmentation, or its refusal."""
    answer = place(layout.gang, capacity)
    if isinstance(answer, Found):
        return tuple(answer.positions[str(pod)] for pod in range(len(layout.pods)))
    return PolicyRefusal.WAITS if answer.proved else PolicyRefusal.UNDECIDED


def first_fit(layout: Layout, capacity: Capacity) -> Spots | PolicyRefusal:
    """Place pods one by one on the first node, in name order, with enough capacity.

    A group goes into the first domain that takes all of its pods this way, one group after the other. Where a coarser
    level is preferred, its domains are tried in order, and the whole cluster if none takes all groups. There is no
    backtracking.
    """
    wanted = sum(layout.gpus)
    for start, end in _areas(layout, capacity.domains):
        gpus, slots = _free(layout, capacity)
        if int(gpus[start:end].sum()) < wanted:
            continue
        spots: list[int] = []
        for members in layout.members:
            sizes = [layout.gpus[pod] for pod in members]
            for nodes in _homes(layout, capacity.domains, start, end):
                if (found := _fill(gpus, slots, nodes, sizes)) is not None:
                    spots += found
                    break
            else:
                break
        else:
            return tuple(spots)
    return PolicyRefusal.WAITS


def kueue_rule(layout: Layout, capacity: Capacity) -> Spots | PolicyRefusal:
    """Place by Kueue's rule; see `coterie.simulation.kueue`."""
    return kueue(layout, capacity) or PolicyRefusal.WAITS


POLICIES: Mapping[str, Policy] = {"coterie": coterie, "first-fit": first_fit, "kueue": kueue_rule}


def _areas(layout: Layout, domains: Domains) -> Iterator[tuple[int, int]]:
    """Yield the slices of positions in which all groups are tried."""
    if layout.preferred is not None:
        yield from _slices(domains.tiers[layout.preferred])
    yield 0, len(domains)


def _homes(layout: Layout, domains: Domains, start: int, end: int) -> Iterator[Ints]:
    """Yield the positions of each domain in a slice that a group may use, in name order."""
    if layout.level is None:
        yield np.argsort(domains.order)
        return
    for low, high in _slices(domains.tiers[layout.level]):
        if start <= low and high <= end:
            yield low + np.argsort(domains.order[low:high])


def _slices(tier: Tier) -> Iterator[tuple[int, int]]:
    return zip(tier.start.tolist(), tier.end.tolist(), strict=True)


def _free(layout: Layout, capacity: Capacity) -> tuple[Ints, Ints]:
    """Return free GPUs and free pod slots by position, zero on nodes that are not feasible for the job."""
    cluster = capacity.domains.cluster
    open_ = capacity.fit(layout.pods[0]).mask & capacity.usable
    gpus = np.where(open_, np.maximum(capacity.free[cluster.resource(GPU)], 0), 0)
    return gpus, np.maximum(capacity.free[cluster.resource(PODS)], 0)


def _fill(gpus: Ints, slots: Ints, nodes: Ints, sizes: list[int]) -> list[int] | None:
    """Assign pods to nodes by first fit and charge them; None, with nothing charged, when one of them does not fit."""
    found: list[int] = []
    before = gpus[nodes], slots[nodes]
    for size in dict.fromkeys(sizes):
        count = sizes.count(size)
        room = np.minimum(gpus[nodes] // size, slots[nodes])
        # As many as fit on the first node, then on the next: the number left to place when each node is reached.
        pods = np.clip(count - (np.cumsum(room) - room), 0, room)
        if int(pods.sum()) < count:
            gpus[nodes], slots[nodes] = before
            return None
        gpus[nodes] -= pods * size
        slots[nodes] -= pods
        found += np.repeat(nodes, pods).tolist()
    return found
