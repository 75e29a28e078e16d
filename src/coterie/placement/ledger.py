"""What a search has committed so far: pods per domain and shape, checked against room, undone in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coterie.placement.capacity import Capacity
from coterie.placement.packing import Item, Packer, Region
from coterie.placement.problem import Problem
from coterie.topology.cluster import Ints


class Piece(NamedTuple):
    """Pods of one class bound to one region."""

    class_: int
    region: Region
    pods: int


class Ledger:
    """Commitments and their undoing.

    For one shape, counting is exact: the regions are nested or disjoint, so pods fit exactly when no domain is asked
    for more than it has. Where shapes meet, or pods are bound to nodes that lack a label, the packer decides.
    """

    def __init__(self, problem: Problem, capacity: Capacity, packer: Packer) -> None:
        self._problem = problem
        self._tiers = capacity.domains.tiers
        self._fits = [capacity.fit(shape) for shape in problem.shapes]
        self._packer = packer
        self.pieces: list[Piece] = []
        # (level, shape) -> domain -> pods; level -1 is the whole cluster.
        self.taken: dict[tuple[int, int], dict[int, int]] = {}

    def chain(self, region: Region) -> list[tuple[int, int]]:
        """Return (level, domain) of the region and of everything above it, the whole cluster last."""
        level, domain = region.level, region.domain
        links = []
        while level >= 0:
            links.append((level, domain))
            domain = int(self._tiers[level].parent[domain])
            level -= 1
        links.append((-1, 0))
        return links

    def commit(self, class_: int, region: Region, count: int) -> bool:
        """Bind pods to a region. False, with nothing changed, when they do not fit beside what is committed."""
        shape = self._problem.classes[class_].shape
        fit = self._fits[shape]
        chain = self.chain(region)
        for level, domain in chain:
            room = fit.total if level < 0 else int(fit.sums[level][domain])
            if self.taken.get((level, shape), {}).get(domain, 0) + count > room:
                return False
        self._book(chain, shape, count)
        self.pieces.append(Piece(class_, region, count))
        if self._packs(region):
            return True
        self.undo(len(self.pieces) - 1)
        return False

    def undo(self, mark: int) -> None:
        """Take back every commitment made since there were `mark` pieces."""
        while len(self.pieces) > mark:
            piece = self.pieces.pop()
            self._book(self.chain(piece.region), self._problem.classes[piece.class_].shape, -piece.pods)

    def room(self, level: int, shape: int, low: int, high: int) -> Ints:
        """Return the room left in domains low..high-1 of a level, by counting alone."""
        room = self._fits[shape].sums[level][low:high]
        taken = self.taken.get((level, shape))
        if taken:
            room = room.copy()
            for domain, pods in taken.items():
                if low <= domain < high:
                    room[domain - low] -= pods
        return room

    def touched(self, level: int, domain: int) -> bool:
        """Tell whether anything is committed inside a domain."""
        return any(self.taken.get((level, shape), {}).get(domain) for shape in range(len(self._fits)))

    def items(self, pieces: Sequence[Piece]) -> tuple[Item, ...]:
        """Add pieces up to items for the packer."""
        totals: dict[tuple[int, Region], int] = {}
        for piece in pieces:
            key = (self._problem.classes[piece.class_].shape, piece.region)
            totals[key] = totals.get(key, 0) + piece.pods
        return tuple(sorted(Item(shape, region, count) for (shape, region), count in totals.items()))

    def _packs(self, region: Region) -> bool:
        items = self.items(self._sharing(region))
        counting = all(item.shape == items[0].shape and item.region.lacking < 0 for item in items)
        return counting or self._packer.pack(items) is not None

    def _sharing(self, region: Region) -> list[Piece]:
        """Return the pieces that may meet those of a region on a node."""
        if any(piece.region.level < 0 for piece in self.pieces):
            return self.pieces
        top = self.chain(region)[-2]
        return [piece for piece in self.pieces if self.chain(piece.region)[-2] == top]

    def _book(self, chain: Sequence[tuple[int, int]], shape: int, count: int) -> None:
        for level, domain in chain:
            taken = self.taken.setdefault((level, shape), {})
            pods = taken.get(domain, 0) + count
            if pods:
                taken[domain] = pods
            else:
                del taken[domain]
