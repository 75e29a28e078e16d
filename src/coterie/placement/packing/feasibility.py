"""The feasibility test: whether pods, each bound to a region, fit on the nodes together, and on which.

A largest-first packing is tried; where that fails, one shape is decided by flow and several by an exact search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.gang.tree import Shape
from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.packing.exact import Exact
from coterie.placement.packing.flow import flow
from coterie.placement.packing.node_table import Item, NodeTable, Packing, Region, positions
from coterie.topology.cluster import Ints


class Packer:
    """The packing of items on the nodes of one capacity, which must not change meanwhile."""

    def __init__(self, capacity: Capacity, shapes: Sequence[Shape], budget: Budget) -> None:
        self.capacity = capacity
        self.fits = [capacity.fit(shape) for shape in shapes]
        self._budget = budget
        self._known: dict[tuple[Item, ...], Packing | None] = {}
        self._rooms: dict[tuple[int, Region], int] = {}
        self._measured: dict[int, tuple[int, tuple[Ints, ...]]] = {}
        if len(self.fits) == 1:
            self.rows: Ints = self.fits[0].rows
            self.needs: Ints = self.fits[0].need.T
            return
        rows = sorted({int(row) for fit in self.fits for row in fit.rows})
        self.rows = np.array(rows, dtype=np.int64)
        self.needs = np.zeros((len(shapes), len(rows)), dtype=np.int64)
        for number, fit in enumerate(self.fits):
            self.needs[number, np.searchsorted(self.rows, fit.rows)] = fit.need[:, 0]

    def gpus(self, shape: int) -> int:
        """Return how many GPUs one pod of a shape asks for, of whatever make."""
        rows = self.capacity.domains.cluster.gpu_rows
        fit = self.fits[shape]
        return sum(need for row, (need,) in zip(fit.rows.tolist(), fit.need.tolist(), strict=True) if row in rows)

    def weights(self, shape: int) -> dict[int, int]:
        """Return the weight of one pod of a shape by each further measure: the resources, if shapes differ."""
        if len(self.fits) == 1:
            return {}
        return {len(self.fits) + row: int(need) for row, need in enumerate(self.needs[shape]) if need}

    def measured(self, measure: int) -> tuple[int, tuple[Ints, ...]]:
        """Return the total by a measure, in the cluster and per level and domain."""
        if measure < len(self.fits):
            return self.fits[measure].total, self.fits[measure].sums
        if measure not in self._measured:
            free = self._free(measure)
            tiers = self.capacity.domains.tiers
            self._measured[measure] = int(free.sum()), tuple(tier.sums(free) for tier in tiers)
        return self._measured[measure]

    def _free(self, measure: int) -> Ints:
        """Return the free amount of a resource on every node that some shape fits on."""
        row = self.rows[measure - len(self.fits)]
        usable = np.any([fit.fits > 0 for fit in self.fits], axis=0)
        return np.where(usable, np.maximum(self.capacity.free[row], 0), 0)

    def room(self, measure: int, region: Region) -> int:
        """Return the capacity of a region by a measure when nothing else is placed."""
        if region.lacking < 0:
            total, sums = self.measured(measure)
            return total if region.level < 0 else int(sums[region.level][list(region.domains)].sum())
        key = (measure, region)
        if key not in self._rooms:
            total, sums = self.measured(measure)
            if region.level < 0:
                self._rooms[key] = total - int(sums[region.lacking].sum())
            else:
                there = self.fits[measure].fits if measure < len(self.fits) else self._free(measure)
                self._rooms[key] = int(there[positions(self.capacity.domains, region)].sum())
        return self._rooms[key]

    def heaviest(self, measure: int) -> int:
        """Return the greatest weight of one pod by a measure."""
        return 1 if measure < len(self.fits) else int(self.needs[:, measure - len(self.fits)].max())

    def pack(self, items: tuple[Item, ...]) -> Packing | None:
        """Return a packing of all items, or None when there is none; items must be sorted."""
        if items not in self._known:
            self._known[items] = self._pack(items)
        return self._known[items]

    def _pack(self, items: tuple[Item, ...]) -> Packing | None:
        if any(self.room(item.shape, item.region) < item.pods for item in items):
            return None
        table = self.table(items)
        for order in (table.by_reach(), table.by_size()):
            if (packing := table.largest_first(order)) is not None:
                return packing
        if len({item.shape for item in items}) == 1:
            return flow(table)
        return Exact(table, self._budget).solve()

    def table(self, items: tuple[Item, ...]) -> NodeTable:
        """Return the items with the nodes that any of them may use."""
        domains = self.capacity.domains
        if len(items) == 1:
            where = positions(self.capacity.domains, items[0].region)
            nodes = where[self.fits[items[0].shape].fits[where] > 0]
            may = np.ones((1, len(nodes)), dtype=bool)
        else:
            usable = np.zeros((len(items), len(domains)), dtype=bool)
            for number, item in enumerate(items):
                where = positions(self.capacity.domains, item.region)
                usable[number, where] = self.fits[item.shape].fits[where] > 0
            nodes = np.flatnonzero(usable.any(axis=0))
            may = usable[:, nodes]
        ties = np.zeros(len(nodes), dtype=np.int64)
        level = domains.neighbourhood
        if level >= 0:
            # Among equal nodes, those of the fullest neighbourhood go first, so that empty racks stay empty.
            inside = domains.tiers[level].of[nodes]
            ties = np.where(inside >= 0, self.fits[items[0].shape].sums[level][inside], 0)
        return NodeTable(
            items=items,
            nodes=nodes,
            # An overcommitted node has no free capacity, but must not lower the sum over the others.
            free=np.maximum(self.capacity.free[np.ix_(self.rows, nodes)], 0),
            needs=self.needs[[item.shape for item in items]],
            may=may,
            ties=ties,
        )
