"""The table on which items are packed: their candidate nodes, with their free capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coterie.placement.search.choice import fewest, tightest
from coterie.topology.cluster import Bools, Ints
from coterie.topology.domains import Domains


class Region(NamedTuple):
    """The nodes open to some pods: domains of a level, or only their nodes without the label of level `lacking`.

    Level -1 has one domain, 0: the whole cluster.
    """

    level: int
    domains: tuple[int, ...]
    lacking: int = -1


EVERYWHERE = Region(-1, (0,))


def positions(domains: Domains, region: Region) -> Ints:
    """Return the positions of a region's nodes."""
    if region.level < 0:
        where = np.arange(len(domains))
    else:
        tier = domains.tiers[region.level]
        where = np.concatenate([np.arange(tier.start[one], tier.end[one]) for one in region.domains])
    if region.lacking >= 0:
        where = where[domains.tiers[region.lacking].of[where] < 0]
    return where


class Item(NamedTuple):
    """Some pods of one shape that must be placed inside one region."""

    shape: int
    region: Region
    pods: int


Packing = tuple[tuple[tuple[int, int], ...], ...]  # per item: (position, pods) pairs


@dataclass(eq=False, slots=True)
class NodeTable:
    """The items and the nodes any of them may use; columns are nodes."""

    items: tuple[Item, ...]
    nodes: npt.NDArray[np.int64]
    free: Ints
    needs: Ints  # [item, row]
    may: Bools  # [item, node]
    ties: Ints  # among equal nodes the smaller value goes first

    def by_reach(self) -> list[int]:
        """Return the items in ascending order of their number of candidate nodes."""
        reach, sizes = self.reach(), self.sizes()
        return sorted(range(len(self.items)), key=lambda item: (reach[item], -sizes[item], item))

    def by_size(self) -> list[int]:
        """Return the items in descending order of the size of their pods."""
        reach, sizes = self.reach(), self.sizes()
        return sorted(range(len(self.items)), key=lambda item: (-sizes[item], reach[item], item))

    def reach(self) -> list[int]:
        """Return the number of candidate nodes of each item."""
        return [int(row.sum()) for row in self.may]

    def sizes(self) -> list[float]:
        """Return the size of one pod of each item: its greatest share of the nodes' capacity."""
        whole = self.free.sum(axis=1, dtype=np.float64) + 1.0
        return [float((need / whole).max()) for need in self.needs]

    def largest_first(self, order: Sequence[int]) -> Packing | None:
        """Place the items in this order, each on the fewest and fullest nodes; None when one does not fit."""
        free = self.free.copy()
        placed: list[tuple[tuple[int, int], ...]] = [()] * len(self.items)
        for number in order:
            need = self.needs[number]
            asked = need > 0
            fits = (free[asked] // need[asked, None]).min(axis=0)
            fits[~self.may[number]] = 0
            wanted = self.items[number].pods
            if fewest(fits, wanted) is None:
                return None
            chosen = tightest(fits, wanted, (self.ties,))
            for node, pods in chosen:
                free[:, node] -= need * pods
            placed[number] = tuple((int(self.nodes[node]), pods) for node, pods in chosen)
        return tuple(placed)
