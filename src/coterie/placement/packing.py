"""Tells whether pods, each bound to a region, fit on the nodes together, and on which.

A largest-first packing is tried; where that fails, one shape is settled by flow and several by an exact search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coterie.gang.tree import Shape
from coterie.placement.bench import Bench, Item, Packing, Region
from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.exact import Exact
from coterie.placement.flow import flow


class Packer:
    """Packs items on the nodes of one capacity, which must not change meanwhile."""

    def __init__(self, capacity: Capacity, shapes: Sequence[Shape], budget: Budget) -> None:
        self.capacity = capacity
        self.fits = [capacity.fit(shape) for shape in shapes]
        self._budget = budget
        self._known: dict[tuple[Item, ...], Packing | None] = {}
        self._rooms: dict[tuple[int, Region], int] = {}
        rows = sorted({int(row) for fit in self.fits for row in fit.rows})
        self.rows = np.array(rows, dtype=np.int64)
        self.needs = np.zeros((len(shapes), len(rows)), dtype=np.int64)
        for number, fit in enumerate(self.fits):
            self.needs[number, np.searchsorted(self.rows, fit.rows)] = fit.need[:, 0]

    def positions(self, region: Region) -> npt.NDArray[np.int64]:
        """Return the positions of a region's nodes."""
        domains = self.capacity.domains
        if region.level < 0:
            where = np.arange(len(domains))
        else:
            tier = domains.tiers[region.level]
            where = np.concatenate([np.arange(tier.start[one], tier.end[one]) for one in region.domains])
        if region.lacking >= 0:
            where = where[domains.tiers[region.lacking].of[where] < 0]
        return where

    def room(self, shape: int, region: Region) -> int:
        """Return how many pods of a shape the region holds when nothing else is placed."""
        fit = self.fits[shape]
        if region.lacking >= 0:
            key = (shape, region)
            if key not in self._rooms:
                self._rooms[key] = int(fit.fits[self.positions(region)].sum())
            return self._rooms[key]
        return fit.total if region.level < 0 else int(fit.sums[region.level][list(region.domains)].sum())

    def pack(self, items: tuple[Item, ...]) -> Packing | None:
        """Return a packing of all items, or None when there is none; items must be sorted."""
        if items not in self._known:
            self._known[items] = self._pack(items)
        return self._known[items]

    def _pack(self, items: tuple[Item, ...]) -> Packing | None:
        if any(self.room(item.shape, item.region) < item.pods for item in items):
            return None
        bench = self._bench(items)
        sizes, reach = bench.sizes(), bench.reach()
        by_region = sorted(range(len(items)), key=lambda i: (reach[i], -sizes[i], i))
        by_size = sorted(range(len(items)), key=lambda i: (-sizes[i], reach[i], i))
        for order in (by_region, by_size):
            if (packing := bench.largest_first(order)) is not None:
                return packing
        if len({item.shape for item in items}) == 1:
            return flow(bench)
        return Exact(bench, self._budget).solve()

    def _bench(self, items: tuple[Item, ...]) -> Bench:
        domains = self.capacity.domains
        usable = np.zeros((len(items), len(domains)), dtype=bool)
        for number, item in enumerate(items):
            where = self.positions(item.region)
            usable[number, where] = self.fits[item.shape].fits[where] > 0
        nodes = np.flatnonzero(usable.any(axis=0))
        ties = np.zeros(len(nodes), dtype=np.int64)
        if domains.tiers:
            # Among equal nodes, those of the fullest finest domain go first: whole racks stay whole.
            sums = np.append(self.fits[items[0].shape].sums[-1], 0)
            ties = sums[domains.tiers[-1].of[nodes]]
        return Bench(
            items=items,
            nodes=nodes,
            # An overcommitted node has nothing to give, but must not count against the others in a sum.
            free=np.maximum(self.capacity.free[np.ix_(self.rows, nodes)], 0),
            needs=self.needs[[item.shape for item in items]],
            may=usable[:, nodes],
            ties=ties,
        )
