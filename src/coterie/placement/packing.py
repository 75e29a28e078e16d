"""Packing: do these pods, each bound to a region, fit on the nodes together, and on which?

One shape alone is a matter of counting. Several shapes share nodes, so counts are only a bound; then a largest-first
packing is tried, and where that fails a depth-first search over kinds of equal nodes decides. The search fills one
node after the other with patterns to which nothing more can be added: if any packing exists, one made of such
patterns does, because a pod that still fits on an earlier node can always be moved there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coterie.gang.tree import Shape
from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.choosing import fewest, tightest
from coterie.topology.cluster import Ints


class Region(NamedTuple):
    """Where pods may go: a domain (level -1 is the whole cluster), or its nodes that lack level `lacking`."""

    level: int
    domain: int
    lacking: int = -1


EVERYWHERE = Region(-1, 0)


class Item(NamedTuple):
    """Some pods of one shape that must be placed inside one region."""

    shape: int
    region: Region
    pods: int


Packing = tuple[tuple[tuple[int, int], ...], ...]  # per item: (position, pods) pairs
Vector = tuple[int, ...]


class Packer:
    """Packs items on the nodes of one capacity, which must not change meanwhile."""

    def __init__(self, capacity: Capacity, shapes: Sequence[Shape], budget: Budget) -> None:
        self.capacity = capacity
        self.fits = [capacity.fit(shape) for shape in shapes]
        self._budget = budget
        self._known: dict[tuple[Item, ...], Packing | None] = {}
        rows = sorted({int(row) for fit in self.fits for row in fit.rows})
        self.rows = np.array(rows, dtype=np.int64)
        self.needs = np.zeros((len(shapes), len(rows)), dtype=np.int64)
        for number, fit in enumerate(self.fits):
            self.needs[number, np.searchsorted(self.rows, fit.rows)] = fit.need[:, 0]

    def positions(self, region: Region) -> npt.NDArray[np.int64]:
        """Return the positions of a region's nodes."""
        domains = self.capacity.domains
        if region.level < 0:
            start, end = 0, len(domains)
        else:
            tier = domains.tiers[region.level]
            start, end = int(tier.start[region.domain]), int(tier.end[region.domain])
        where = np.arange(start, end)
        if region.lacking >= 0:
            where = where[domains.tiers[region.lacking].of[start:end] < 0]
        return where

    def room(self, shape: int, region: Region) -> int:
        """Return how many pods of a shape the region holds when nothing else is placed."""
        fit = self.fits[shape]
        if region.lacking >= 0:
            return int(fit.fits[self.positions(region)].sum())
        return fit.total if region.level < 0 else int(fit.sums[region.level][region.domain])

    def pack(self, items: tuple[Item, ...]) -> Packing | None:
        """Return a packing of all items, or None when there is none; items must be sorted."""
        if items not in self._known:
            self._known[items] = self._pack(items)
        return self._known[items]

    def _pack(self, items: tuple[Item, ...]) -> Packing | None:
        if any(self.room(item.shape, item.region) < item.pods for item in items):
            return None
        bench = _Bench.of(self, items)
        sizes = bench.sizes()
        by_region = sorted(range(len(items)), key=lambda i: (bench.reach[i], -sizes[i], i))
        by_size = sorted(range(len(items)), key=lambda i: (-sizes[i], bench.reach[i], i))
        for order in (by_region, by_size):
            if (packing := bench.largest_first(order)) is not None:
                return packing
        if len({item.shape for item in items}) == 1 and len({item.region for item in items}) == 1:
            return None
        return _Exact(bench, self._budget).solve()


@dataclass(eq=False, slots=True)
class _Bench:
    """The nodes that matter to some items, with their free capacity; columns are nodes."""

    items: tuple[Item, ...]
    nodes: npt.NDArray[np.int64]
    free: Ints
    needs: Ints  # [item, row]
    may: npt.NDArray[np.bool_]  # [item, node]
    reach: list[int]
    ties: Ints

    @staticmethod
    def of(packer: Packer, items: tuple[Item, ...]) -> _Bench:
        domains = packer.capacity.domains
        usable = np.zeros((len(items), len(domains)), dtype=bool)
        for number, item in enumerate(items):
            where = packer.positions(item.region)
            usable[number, where] = packer.fits[item.shape].fits[where] > 0
        nodes = np.flatnonzero(usable.any(axis=0))
        # An overcommitted node has nothing to give, but must not count against the others in a sum.
        free = np.maximum(packer.capacity.free[np.ix_(packer.rows, nodes)], 0)
        ties = np.zeros(len(nodes), dtype=np.int64)
        if domains.tiers:
            # Among equal nodes, those of the fullest finest domain go first: whole racks stay whole.
            inside = domains.tiers[-1].of[nodes]
            sums = packer.fits[items[0].shape].sums[-1]
            ties = np.where(inside >= 0, np.append(sums, 0)[inside], 0)
        return _Bench(
            items=items,
            nodes=nodes,
            free=free,
            needs=packer.needs[[item.shape for item in items]],
            may=usable[:, nodes],
            reach=[int(row.sum()) for row in usable],
            ties=ties,
        )

    def sizes(self) -> list[float]:
        """Return how large one pod of each item is: its greatest share of what the nodes have."""
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
            chosen = tightest(fits, wanted, self.ties)
            for node, pods in chosen:
                free[:, node] -= need * pods
            placed[number] = tuple((int(self.nodes[node]), pods) for node, pods in chosen)
        return tuple(placed)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Nodes that are equal for the question: same free capacity, same items allowed."""

    nodes: tuple[int, ...]
    free: Vector
    items: tuple[int, ...]


class _Exact:
    """Depth-first search over kinds of nodes, remembering what failed."""

    def __init__(self, bench: _Bench, budget: Budget) -> None:
        self._bench = bench
        self._budget = budget
        self._needs = [tuple(int(x) for x in need) for need in bench.needs]
        self._kinds = self._sort_nodes()
        self._single = [[self._most(kind, i) for i in range(len(bench.items))] for kind in self._kinds]
        self._after = self._suffixes()
        self._failed: set[tuple[int, int, Vector]] = set()

    def solve(self) -> Packing | None:
        left = tuple(item.pods for item in self._bench.items)
        trail: list[tuple[int, Vector]] = []
        frames = [self._moves(0, 0, left)]
        while frames:
            move = next(frames[-1], None)
            if move is None:
                frames.pop()
                if trail:
                    trail.pop()
                continue
            kind, used, pattern, left = move
            trail.append((kind, pattern))
            if not any(left):
                return self._deal(trail)
            frames.append(self._moves(kind, used + 1, left))
        return None

    def _moves(self, kind: int, used: int, left: Vector) -> Iterator[tuple[int, int, Vector, Vector]]:
        """Yield (kind, nodes of it used before, pattern, pods left) for every maximal pattern of the next node."""
        while kind < len(self._kinds):
            spare = len(self._kinds[kind].nodes) - used
            if not self._could_fit(kind, spare, left):
                return
            useful = [i for i in self._kinds[kind].items if left[i] and self._single[kind][i]]
            if spare and useful:
                break
            kind, used = kind + 1, 0
        else:
            return
        state = (kind, used, left)
        if state in self._failed:
            return
        for pattern in self._patterns(self._kinds[kind].free, useful, left):
            self._budget.spend()
            rest = list(left)
            for i, pods in zip(useful, pattern, strict=True):
                rest[i] -= pods
            full = [0] * len(left)
            for i, pods in zip(useful, pattern, strict=True):
                full[i] = pods
            yield kind, used, tuple(full), tuple(rest)
        self._failed.add(state)

    def _could_fit(self, kind: int, spare: int, left: Vector) -> bool:
        counts, amounts = self._after[kind + 1]
        if any(want and counts[i] + spare * self._single[kind][i] < want for i, want in enumerate(left)):
            return False
        free = self._kinds[kind].free
        return all(
            amounts[row] + spare * free[row] >= sum(want * self._needs[i][row] for i, want in enumerate(left) if want)
            for row in range(len(free))
        )

    def _patterns(self, free: Vector, useful: Sequence[int], left: Vector) -> Iterator[Vector]:
        """Yield every way to fill a node with pods of these items to which no further pod can be added."""
        stack: list[tuple[Vector, Vector]] = [(free, ())]
        while stack:
            room, pattern = stack.pop()
            if len(pattern) == len(useful):
                if not any(pattern[at] < left[i] and _fits(self._needs[i], room) for at, i in enumerate(useful)):
                    yield pattern
                continue
            i = useful[len(pattern)]
            need = self._needs[i]
            most = min(left[i], min(have // want for have, want in zip(room, need, strict=True) if want))
            stack.extend(
                (tuple(have - pods * want for have, want in zip(room, need, strict=True)), (*pattern, pods))
                for pods in range(most + 1)
            )

    def _sort_nodes(self) -> list[_Kind]:
        bench = self._bench
        kinds: dict[tuple[Vector, tuple[int, ...]], list[int]] = {}
        for column, node in enumerate(bench.nodes.tolist()):
            free = tuple(int(x) for x in bench.free[:, column])
            items = tuple(int(i) for i in np.flatnonzero(bench.may[:, column]))
            kinds.setdefault((free, items), []).append(node)
        made = [_Kind(tuple(nodes), free, items) for (free, items), nodes in kinds.items()]
        # Nodes with the fewest uses first: what only fits there must go there.
        return sorted(made, key=lambda kind: (len(kind.items), kind.free, kind.nodes))

    def _most(self, kind: _Kind, item: int) -> int:
        if item not in kind.items:
            return 0
        need = self._needs[item]
        return max(0, min(have // want for have, want in zip(kind.free, need, strict=True) if want))

    def _suffixes(self) -> list[tuple[Vector, Vector]]:
        """Per kind on: how many pods of each item, and how much of each resource, all later nodes have."""
        counts = [0] * len(self._bench.items)
        amounts = [0] * len(self._bench.free)
        table = [(tuple(counts), tuple(amounts))]
        for kind, single in zip(reversed(self._kinds), reversed(self._single), strict=True):
            counts = [have + len(kind.nodes) * one for have, one in zip(counts, single, strict=True)]
            amounts = [have + len(kind.nodes) * one for have, one in zip(amounts, kind.free, strict=True)]
            table.append((tuple(counts), tuple(amounts)))
        return table[::-1]

    def _deal(self, trail: Sequence[tuple[int, Vector]]) -> Packing:
        placed: list[list[tuple[int, int]]] = [[] for _ in self._bench.items]
        used = [0] * len(self._kinds)
        for kind, pattern in trail:
            node = self._kinds[kind].nodes[used[kind]]
            used[kind] += 1
            for item, pods in enumerate(pattern):
                if pods:
                    placed[item].append((node, pods))
        return tuple(tuple(sorted(pairs)) for pairs in placed)


def _fits(need: Vector, room: Vector) -> bool:
    return all(have >= want for have, want in zip(room, need, strict=True))
