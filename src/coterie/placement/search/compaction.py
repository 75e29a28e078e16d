"""The fewest domains that hold some pods, level by level from the coarsest: by counting, and without a proof.

It decides only where no constraint does. If one domain holds everything, the finest such domain is taken, and the
tightest of its level; below it, and where no domain is large enough, the fewest domains of each level in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie.placement.packing.node_table import Region
from coterie.placement.search.choice import fewest, roomiest, tightest
from coterie.topology.cluster import Bools, Ints
from coterie.topology.domains import Tier

# How many domains, or sets of them, are tried at each level where counting alone does not decide.
_OFFERS = 4


class Demand(NamedTuple):
    """An amount demanded by one measure, in pods or of a resource, and the room for it in domains of a level."""

    wanted: int
    room: Callable[[int], Ints]
    pods: bool = True


Admits = Callable[[int, Ints], Bools]  # domains of a level that could hold everything, ignoring room


class Compaction:
    """Domains of some levels, coarsest first, for pods that may use any node of a region.

    `inside` returns the domains of a level in the region. `admits` tells which of them could hold everything for
    reasons other than room. Domains of the nodes in `near` are already in use and cost nothing. `fits` is the room of
    every node, where the number of nodes matters.
    """

    def __init__(
        self,
        tiers: Sequence[Tier],
        levels: Sequence[int],
        inside: Callable[[int], Ints],
        demands: Sequence[Demand],
        *,
        near: Sequence[int] = (),
        admits: Admits | None = None,
        fits: Ints | None = None,
    ) -> None:
        self._tiers = tiers
        self._levels = levels
        self._inside = inside
        self._demands = demands
        self._near = list(near)
        self._admits = admits
        self._fits = fits

    def best(self, *, several: bool = False) -> Region | None:
        """Return the domains to use; None when nodes outside every domain are needed.

        With `several`, no single domain of the finest level holds everything, and none is tried.
        """
        return next(self.regions(several=several), None)

    def regions(self, *, several: bool = False) -> Iterator[Region]:
        """Yield sets of domains, those that keep the pods closest together first."""
        if not self._near:
            for at in range(len(self._levels) - 1 - several, -1, -1):
                for domain in self._singles(at):
                    yield self._descend(at, [domain])
        domains = self._inside(self._levels[0])
        seen: list[list[int]] = []
        for least in range(1, _OFFERS + 1):
            chosen = self._fewest(0, domains, least)
            if chosen is None:
                return
            if chosen not in seen:
                seen.append(chosen)
                yield self._descend(0, chosen)

    def _singles(self, at: int) -> Iterator[int]:
        """Yield single domains of a level that hold everything: in the fewest parts, then the tightest first."""
        level = self._levels[at]
        domains = self._inside(level)
        first, *others = self._demands
        total = first.room(level)[domains]
        good = total >= first.wanted
        for demand in others:
            room = demand.room(level)[domains]
            if demand.pods:
                total = total + room
            good &= room >= demand.wanted
        if self._admits is not None and good.any():
            good &= self._admits(level, domains)
        domains, total = domains[good], total[good]
        if len(domains) > 1 and at + 1 < len(self._levels) and len(self._demands) == 1:
            total = total + self.parts(at, domains, total) * (int(total.max()) + 1)
        for _ in range(min(_OFFERS, len(domains))):
            chosen = fullest(self._tiers, level, domains[total == total.min()], self._room)
            yield chosen
            rest = domains != chosen
            domains, total = domains[rest], total[rest]

    def parts(self, at: int, domains: Ints, total: Ints) -> Ints:
        """Return how many domains of the next finer level each of these takes; all 0 when the tightest is the best."""
        (demand,) = self._demands
        room = demand.room(self._levels[at + 1])
        least = -(-demand.wanted // max(1, int(room.max(initial=0))))
        tight = int(total.argmin())
        if self._units(at, domains[tight : tight + 1], demand.wanted) == least:
            return np.zeros(len(domains), dtype=np.int64)
        # Sort the finer domains by their parent, and within it by their room in descending order.
        around = self._tiers[self._levels[at]].of[self._tiers[self._levels[at + 1]].start].astype(np.int64)
        most = int(room.max())
        falling = np.sort(around * (most + 1) + (most - np.maximum(room, 0)))
        so_far = np.concatenate(([0], np.cumsum(most - falling % (most + 1))))
        first = np.searchsorted(falling, domains * (most + 1))
        count: Ints = np.searchsorted(so_far, so_far[first] + demand.wanted) - first
        return count

    def _descend(self, at: int, chosen: list[int]) -> Region:
        """Continue with the finer levels inside some domains of a level."""
        for finer in range(at + 1, len(self._levels)):
            inner = self._fewest(finer, self._children(finer, np.array(chosen)), 1)
            if inner is None:
                return Region(self._levels[finer - 1], tuple(chosen))
            chosen = inner
        return Region(self._levels[-1], tuple(chosen))

    def _children(self, at: int, domains: Ints) -> Ints:
        """Return the domains of a level inside domains of the one before it."""
        above = self._tiers[self._levels[at - 1]]
        starts = self._tiers[self._levels[at]].start
        low, high = starts.searchsorted((above.start[domains], above.end[domains])).tolist()
        if len(low) == 1:
            return np.arange(low[0], high[0])
        return np.concatenate([np.arange(*span) for span in zip(low, high, strict=True)])

    def _fewest(self, at: int, domains: Ints, least: int) -> list[int] | None:
        """Return the fewest domains, but at least `least`, that hold everything with those in use; None if none do."""
        level = self._levels[at]
        short = [(demand.wanted, demand.room(level)[domains]) for demand in self._demands]
        ours: list[int] = []
        if self._near:
            used = np.isin(domains, self._tiers[level].of[self._near])
            ours = [int(domain) for domain in domains[used]]
            short = [(wanted - int(room[used].sum()), np.where(used, 0, room)) for wanted, room in short]
        short = [(wanted, np.maximum(room, 0)) for wanted, room in short if wanted > 0]
        if not short:
            return ours
        if len(short) > 1 or least > 1:
            chosen = _greedy(short, least)
        else:
            ((wanted, room),) = short
            chosen = None if fewest(room, wanted) is None else self._set(at, domains, room, wanted)
        return None if chosen is None else sorted([*ours, *domains[chosen].tolist()])

    def _set(self, at: int, domains: Ints, room: Ints, wanted: int) -> list[int]:
        """Return the tightest of the smallest sets, or the roomiest where it uses fewer finer domains."""
        tight = sorted(place for place, _ in tightest(room, wanted))
        if len(tight) < 2 or (at + 1 >= len(self._levels) and self._fits is None):
            return tight
        roomy = sorted(roomiest(room, wanted))
        if tight == roomy:
            return tight
        fewer = self._units(at, domains[roomy], wanted) < self._units(at, domains[tight], wanted)
        return roomy if fewer else tight

    def _units(self, at: int, domains: Ints, wanted: int) -> int:
        """Return how many domains of the next finer level, or nodes at the finest, some domains use."""
        if at + 1 < len(self._levels):
            room = self._demands[0].room(self._levels[at + 1])[self._children(at + 1, domains)]
        else:
            tier = self._tiers[self._levels[at]]
            room = np.concatenate([self._fits[tier.start[one] : tier.end[one]] for one in domains.tolist()])  # type: ignore[index]
        return fewest(room, wanted) or len(room) + 1

    def _room(self, level: int) -> Ints:
        room: Ints = np.sum([demand.room(level) for demand in self._demands if demand.pods], axis=0)
        return room


def fullest(tiers: Sequence[Tier], level: int, domains: Ints, room: Callable[[int], Ints]) -> int:
    """Return the domain whose ancestors have the least room, level by level upwards; then the first by name."""
    above = domains
    while len(domains) > 1 and level:
        above = tiers[level].parent[above].astype(np.int64)
        level -= 1
        around = room(level)[above]
        good = around == around.min()
        domains, above = domains[good], above[good]
    return int(domains[0])


def fullness(tiers: Sequence[Tier], level: int, domains: Ints, room: Callable[[int], Ints]) -> list[Ints]:
    """Return the room around each domain, level by level upwards."""
    around = []
    while level:
        domains = tiers[level].parent[domains].astype(np.int64)
        level -= 1
        around.append(room(level)[domains])
    return around


def _greedy(short: Sequence[tuple[int, Ints]], least: int) -> list[int] | None:
    """Return as many of the roomiest domains as hold everything by each measure; None if all together do not."""
    falling = np.argsort(-sum((room for _, room in short[1:]), short[0][1]), kind="stable")
    count = least
    for wanted, room in short:
        so_far = room[falling].cumsum()
        if not len(so_far) or so_far[-1] < wanted:
            return None
        count = max(count, int(np.searchsorted(so_far, wanted)) + 1)
    return falling[:count].tolist() if count <= len(falling) else None
