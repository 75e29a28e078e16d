"""Free GPUs and whole nodes in every domain: a placement is better the less of them it breaks up.

A node is whole while it has as many free GPUs as the most common node has in all. Kept up to date by deltas, like the
fits of a capacity, once somebody has asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.topology.cluster import Bools, Ints
from coterie.topology.domains import Domains


class Wholeness:
    """Whole nodes (`nodes`), and by level and domain the free GPUs (`gpus`) and the number of whole nodes (`whole`)."""

    def __init__(self, domains: Domains, free: Ints, usable: Bools) -> None:
        self._cluster = domains.cluster
        self._tiers = domains.tiers
        self._size = domains.node_gpus
        self._free = self._free_gpus(free, usable)
        self.nodes = self._is_whole(self._free)
        self.gpus = self._summed(self._free)
        self.whole = self._summed(self.nodes)
        self._offered = domains.offered_gpus

    def refresh(self, where: Ints, free: Ints, usable: Bools) -> None:
        """Record the current free GPUs of some nodes."""
        fresh = self._free_gpus(free, usable)
        gpus = fresh - self._free[where]
        whole = self._is_whole(fresh) - self.nodes[where]
        self._free[where] = fresh
        self.nodes[where] += whole
        for tier, sums, wholes in zip(self._tiers, self.gpus, self.whole, strict=True):
            inside = tier.of[where]
            labelled = inside >= 0
            np.add.at(sums, inside[labelled], gpus[labelled])
            np.add.at(wholes, inside[labelled], whole[labelled])

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
        gpus: Ints = np.where(usable, np.maximum(self._cluster.gpus(free), 0), 0)
        return gpus

    def _is_whole(self, gpus: Ints) -> Ints:
        return (gpus >= self._size).astype(np.int64)

    def _summed(self, values: Ints) -> Sequence[Ints]:
        return [tier.sums(values) for tier in self._tiers]
