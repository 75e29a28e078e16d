"""The nodes that pods get inside the regions they are bound to.

A region expresses the constraints. Inside it pods still stay together: in few domains of the levels below, the coarsest
first, then on few nodes, the fullest first; of equal nodes those that are not whole, then those of the fullest domains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import Item, Packing, Region, positions
from coterie.placement.search.choice import tightest
from coterie.placement.search.compaction import Compaction, Demand
from coterie.topology.cluster import Bools, Ints
from coterie.topology.domains import Domains

Room = Callable[[int], Ints]  # by level, of every domain
Whole = Callable[[], Bools | None]  # of every node whether it is whole, where pods ask for GPUs


def arrange(packer: Packer, items: tuple[Item, ...], near: Sequence[int] = ()) -> Packing | None:
    """Return the nodes for items; None when they do not fit together. Pods of the gang run on the nodes in `near`."""
    if len(items) == 1:
        return (_alone(packer, items[0], near),)
    if any(_finer(packer.capacity.domains, item.region) for item in items):
        return _one_by_one(packer, items, near) or packer.pack(items)
    return packer.pack(items)


def _alone(packer: Packer, item: Item, near: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the nodes for an item that shares its nodes with no other."""
    fit = packer.fits[item.shape]

    def whole() -> Bools | None:
        capacity = packer.capacity
        return capacity.wholeness().nodes if capacity.domains.node_gpus and packer.gpus(item.shape) else None

    return _nodes(packer.capacity.domains, item, fit.fits, fit.sums.__getitem__, near, whole)


def _one_by_one(packer: Packer, items: tuple[Item, ...], near: Sequence[int]) -> Packing | None:
    """Place the items in sequence, those with the fewest candidate nodes first; None when one does not fit."""
    domains = packer.capacity.domains
    table = packer.table(items)
    free = table.free.copy()
    placed: list[tuple[tuple[int, int], ...]] = [()] * len(items)
    taken = list(near)
    for number in table.by_reach():
        item, need = items[number], table.needs[number]
        asked = need > 0
        fits = np.zeros(len(domains), dtype=np.int64)
        there = (free[asked] // need[asked, None]).min(axis=0)
        fits[table.nodes] = np.where(table.may[number], there, 0)
        if int(fits.sum()) < item.pods:
            return None
        placed[number] = _nodes(domains, item, fits, _sums(domains, fits), taken)
        for node, pods in placed[number]:
            free[:, np.searchsorted(table.nodes, node)] -= need * pods
            taken.append(node)
    return tuple(placed)


def _sums(domains: Domains, fits: Ints) -> Room:
    running = np.concatenate(([0], np.cumsum(fits)))
    return lambda level: running[domains.tiers[level].end] - running[domains.tiers[level].start]


def _nodes(
    domains: Domains, item: Item, fits: Ints, room: Room, near: Sequence[int], whole: Whole = lambda: None
) -> tuple[tuple[int, int], ...]:
    """Return (position, pods) for one item; `fits` is how many of its pods fit on each node."""
    region, levels = item.region, _finer(domains, item.region)
    near = [node for node in near if levels and _within(domains, region, node)]
    if not near and int(fits[_span(domains, region)].max(initial=0)) >= item.pods:
        return ((_node(domains, positions(domains, region), fits, room, item.pods, whole), item.pods),)
    if levels:
        inside = cache(partial(domains.inside, region.level, region.domains))
        demand = Demand(item.pods, room)
        region = Compaction(domains.tiers, levels, inside, [demand], near=near, fits=fits).best() or region
    where = positions(domains, region)
    ties: list[Ints] = []
    if int(fits[where].max(initial=0)) == 1 and (intact := whole()) is not None:
        ties.append(intact[where].astype(np.int64))
    if len(region.domains) > 1 or region.level < domains.neighbourhood:
        above = item.region.level if len(item.region.domains) == 1 else -1
        ties += [_around(domains, level, where, room) for level in range(domains.neighbourhood, above, -1)]
    return tuple((int(where[at]), pods) for at, pods in tightest(fits[where], item.pods, ties))


def _node(domains: Domains, where: Ints, fits: Ints, room: Room, pods: int, whole: Whole) -> int:
    """Return the tightest node that holds everything, of those no whole one, then that of the fullest domains."""
    there = fits[where]
    enough = there >= pods
    equal = where[there == there[enough].min()]
    if len(equal) > 1 and (intact := whole()) is not None:
        equal = equal[intact[equal] == intact[equal].min()]
    for level in range(domains.neighbourhood, -1, -1):
        if len(equal) == 1:
            break
        around = _around(domains, level, equal, room)
        equal = equal[around == around.min()]
    return int(equal[0])


def _around(domains: Domains, level: int, where: Ints, room: Room) -> Ints:
    inside = domains.tiers[level].of[where]
    return np.where(inside >= 0, room(level)[inside], 0)


def _span(domains: Domains, region: Region) -> slice | Ints:
    """Return the index of a region's nodes in an array: a slice where possible."""
    if region.lacking < 0 and region.level < 0:
        return slice(None)
    if region.lacking < 0 and len(region.domains) == 1:
        tier, (domain,) = domains.tiers[region.level], region.domains
        return slice(tier.start[domain], tier.end[domain])
    return positions(domains, region)


def _within(domains: Domains, region: Region, node: int) -> bool:
    return region.level < 0 or int(domains.tiers[region.level].of[node]) in region.domains


def _finer(domains: Domains, region: Region) -> tuple[int, ...]:
    """Return the levels at which a region can be narrowed, the coarsest first."""
    return tuple(level for level in domains.groupings if region.level < level and region.lacking < 0)
