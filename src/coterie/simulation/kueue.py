"""Kueue's topology-aware choice of domains, in its default profile.

Facts about Kueue 0.19, in our own words and code:

- First it counts how many pods fit on each node, and adds them up to every domain. It then decides on these counts
  alone, without backtracking.
- *Required*: among the domains of the level that hold the whole job, the one with the least free capacity.
- *Preferred*: the same at the preferred level, else at the next coarser one, and so on. If no domain of the coarsest
  level holds the job, domains are taken in descending order of free capacity, and for the remainder the domain with the
  least free capacity that holds it.
- *Slices* are equal groups that each must be in one domain of a level. They are counted per such domain by rounding
  down; the choice is then made in slices down to that level, and in pods below it.
- *Downwards*, level by level, the same choice is made among all children of the chosen domains.
- A job without a topology request goes to the node with the least free capacity that holds all of it, else to nodes in
  ascending order of free capacity.
- *Pod sets* of one job, which groups of different sizes have to be, are placed in sequence, each on its own, on the
  capacity that the earlier ones left.

Pods of a pod set have one size. Where those of a layout differ by a GPU, they are counted like the largest, and charged
with their real size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.placement.capacity import Capacity
from coterie.simulation.rule import Layout
from coterie.topology.cluster import Ints
from coterie.topology.domains import Domains

Pairs = list[tuple[int, int]]


def kueue(layout: Layout, capacity: Capacity) -> tuple[int, ...] | None:
    """Return the position of every pod, or None where the rule finds no placement."""
    room = capacity.fit(layout.pods[0]).fits
    if layout.level is None:
        return _least_room_first(room, len(layout.pods))
    left = room.copy()
    spots: list[int] = []
    for size in dict.fromkeys(layout.groups):
        found = _pod_set(layout, capacity.domains, left, layout.groups.count(size), size)
        if found is None:
            return None
        spots += found
        np.subtract.at(left, found, 1)
    return tuple(spots)


def _pod_set(layout: Layout, domains: Domains, fits: Ints, groups: int, size: int) -> list[int] | None:
    """Return positions for equal groups, each in one domain of the level, group by group."""
    level = layout.level or 0
    sums = [tier.sums(fits) for tier in domains.tiers]
    if len(layout.groups) == 1:
        chosen = _tightest(sums[level], 1, size)
    else:
        chosen = _slices(layout, domains, level, sums[level] // size, groups)
    if chosen is None:
        return None
    return [spot for domain, some in chosen for spot in _down(domains, fits, sums, level, domain, some * size)]


def pick(room: Ints, wanted: int) -> Pairs | None:
    """Return domains as (index, amount): most capacity first, and for the last part the least that suffices."""
    chosen: Pairs = []
    falling = np.argsort(-room, kind="stable").tolist()
    left = wanted
    for at, place in enumerate(falling):
        most = int(room[place])
        if not most:
            return None
        if most >= left:
            enough = [other for other in falling[at:] if room[other] >= left]
            least = min(enough, key=lambda other: (int(room[other]), other))
            return [*chosen, (least, left)]
        chosen.append((place, most))
        left -= most
    return None


def _tightest(room: Ints, amount: int, wanted: int) -> Pairs | None:
    """Return the domain with the least capacity that holds the whole request, given `amount`."""
    enough = np.flatnonzero(room >= wanted)
    if not len(enough):
        return None
    return [(int(enough[np.argmin(room[enough])]), amount)]


def _least_room_first(room: Ints, wanted: int) -> tuple[int, ...] | None:
    if alone := _tightest(room, wanted, wanted):
        return (alone[0][0],) * wanted
    some = np.flatnonzero(room)
    rising = some[np.argsort(room[some], kind="stable")]
    spots = np.repeat(rising, room[rising])[:wanted]
    return tuple(spots.tolist()) if len(spots) == wanted else None


def _slices(layout: Layout, domains: Domains, level: int, slices: Ints, wanted: int) -> Pairs | None:
    """Return domains of the level for equal groups, as (domain, groups), by the number of slices each holds."""
    tiers = domains.tiers
    room = {level: slices}
    for above in range(level - 1, -1, -1):
        room[above] = np.zeros(len(tiers[above]), dtype=np.int64)
        np.add.at(room[above], tiers[above + 1].parent, room[above + 1])
    if layout.preferred is None:
        return pick(room[level], wanted)
    at, chosen = layout.preferred, _tightest(room[layout.preferred], wanted, wanted)
    while chosen is None and at > 0:
        at -= 1
        chosen = _tightest(room[at], wanted, wanted)
    chosen = chosen or pick(room[at], wanted)
    while chosen is not None and at < level:
        at += 1
        below = np.isin(tiers[at].parent, [domain for domain, _ in chosen])
        chosen = pick(np.where(below, room[at], 0), wanted)
    return chosen


def _down(domains: Domains, fits: Ints, sums: Sequence[Ints], level: int, domain: int, pods: int) -> list[int]:
    """Return positions for the pods assigned to a domain of a level."""
    inside = domains.tiers[level].of == domain
    for finer in range(level + 1, len(domains.tiers)):
        tier = domains.tiers[finer]
        chosen = pick(np.where(inside[tier.start], sums[finer], 0), pods)
        if chosen is not None:  # nodes without a finer label still count for the coarser domain
            inside = np.isin(tier.of, [at for at, _ in chosen])
    nodes = pick(np.where(inside, fits, 0), pods) or []
    return [node for node, amount in nodes for _ in range(amount)]
