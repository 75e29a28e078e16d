"""Free GPUs and whole nodes in every domain: a placement is better the less of them it breaks up.

A node is whole while it has as many free GPUs as the most common node has in all. Kept up to date by deltas, like the
fits of a capacity; a level has sums once somebody has asked for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.topology.cluster import Bools, Ints
from coterie.topology.domains import Domains, LevelSums


class Wholeness:
    """Whole nodes (`nodes`), and by level and domain the free GPUs (`gpus`) and the number of whole nodes (`whole`)."""

    def __init__(self, domains: Domains, free: Ints, usable: Bools) -> None:
        self._cluster = domains.cluster
        self._size = domains.node_gpus
        gpus = self._free = self._free_gpus(free, usable)
        nodes = self.nodes = gpus >= self._size
        self.gpus = LevelSums(domains.tiers, lambda: gpus)
        self.whole = LevelSums(domains.tiers, lambda: nodes)
        self._offered = domains.offered_gpus

    def refresh(self, where: Ints, free: Ints, usable: Bools, memberships: Sequence[tuple[Bools, Ints]]) -> None:
        """Record the current free GPUs of some nodes, whose domains are given for each level."""
        gpus = self._free_gpus(free, usable)
        nodes = gpus >= self._size
        self._add(self.gpus, gpus - self._free[where], memberships)
        self._add(self.whole, nodes.astype(np.int64) - self.nodes[where], memberships)
        self._free[where] = gpus
        self.nodes[where] = nodes

    def untouched(self, level: int, domains: Ints) -> Bools:
        """Return whether all GPUs of each domain are free."""
        untouched: Bools = self.gpus[level][domains] == self._offered[level][domains]
        return untouched

    def whole_beside(self, level: int, taken: Ints) -> Ints:
        """Return the whole nodes left in each domain if so many GPUs are taken, from nodes that are not whole first."""
        whole = self.whole[level]
        partly = self.gpus[level] - whole * self._size
        left: Ints = np.maximum(whole - -(-np.maximum(taken - partly, 0) // self._size), 0)
        return left

    def _free_gpus(self, free: Ints, usable: Bools) -> Ints:
        gpus: Ints = np.maximum(self._cluster.gpus(free), 0)
        gpus *= usable
        return gpus

    @staticmethod
    def _add(known: LevelSums, change: Ints, memberships: Sequence[tuple[Bools, Ints]]) -> None:
        for level, sums in known.items():
            labelled, inside = memberships[level]
            np.add.at(sums, inside, change[labelled])
