"""The commitments of a search: pods per domain and shape, checked against the room, undone in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coterie.placement.capacity import Capacity
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import Item, Region
from coterie.placement.problem import Problem
from coterie.placement.search.outline import Amounts
from coterie.topology.cluster import Ints


class Piece(NamedTuple):
    """Pods of one class bound to one region."""

    class_: int
    region: Region
    pods: int


class Ledger:
    """The commitments and their undo log.

    Room is measured in pods of each shape and, where shapes differ, in each resource as well: what exceeds any measure
    cannot fit. For one shape in single domains that is exact: the regions are nested or disjoint, so pods fit exactly
    when no domain is charged more than it has. Where shapes differ or regions overlap, the packer decides.
    """

    def __init__(self, problem: Problem, capacity: Capacity, packer: Packer) -> None:
        self._problem = problem
        self._tiers = capacity.domains.tiers
        self._fits = packer.fits
        self._packer = packer
        # The weight of one pod of each shape by each measure; measures are the shapes, then the resources.
        self._weights = [{shape: 1, **packer.weights(shape)} for shape in range(len(problem.shapes))]
        self._demands: dict[Amounts, dict[int, int]] = {}
        self._chains: dict[Region, list[tuple[int, int]]] = {}
        self.pieces: list[Piece] = []
        # (level, measure) -> domain -> amount; level -1 is the whole cluster.
        self.taken: dict[tuple[int, int], dict[int, int]] = {}

    def chain(self, region: Region) -> list[tuple[int, int]]:
        """Return (level, domain) of every domain that holds the whole region, the finest first, the cluster last."""
        if region in self._chains:
            return self._chains[region]
        level, domains = region.level, set(region.domains)
        links = []
        while level >= 0:
            if len(domains) == 1:
                links.append((level, next(iter(domains))))
            domains = {int(self._tiers[level].parent[domain]) for domain in domains}
            level -= 1
        links.append((-1, 0))
        self._chains[region] = links
        return links

    def demand(self, amounts: Amounts) -> Mapping[int, int]:
        """Return the demand of pods by every measure."""
        totals = self._demands.get(amounts)
        if totals is None:
            totals = self._demands[amounts] = {}
            for class_, pods in amounts:
                for measure, weight in self._weights[self._problem.classes[class_].shape].items():
                    totals[measure] = totals.get(measure, 0) + weight * pods
        return totals

    def commit(self, class_: int, region: Region, count: int) -> bool:
        """Bind pods to a region; return False, with nothing changed, when they do not fit beside the commitments."""
        demand = self.demand(((class_, count),))
        chain = self.chain(region)
        for measure, amount in demand.items():
            total, sums = self._packer.measured(measure)
            for level, domain in chain:
                room = total if level < 0 else int(sums[level][domain])
                if self.taken.get((level, measure), {}).get(domain, 0) + amount > room:
                    return False
        self._book(chain, demand, 1)
        self.pieces.append(Piece(class_, region, count))
        if self._packs(region):
            return True
        self.undo(len(self.pieces) - 1)
        return False

    def undo(self, mark: int) -> None:
        """Undo every commitment made since there were `mark` pieces."""
        while len(self.pieces) > mark:
            piece = self.pieces.pop()
            self._book(self.chain(piece.region), self.demand(((piece.class_, piece.pods),)), -1)

    def room(self, level: int, measure: int) -> Ints:
        """Return the room left in every domain of a level, by counting alone: an upper bound where regions overlap."""
        room = self._packer.measured(measure)[1][level]
        taken = self.taken.get((level, measure))
        if taken:
            room = room.copy()
            room[list(taken)] -= list(taken.values())
        return room

    def overlapped(self, level: int, domain: int) -> bool:
        """Return whether pods bound to several domains, or to unlabelled nodes, may be placed in a domain."""
        return any(not simple(piece.region) and self._meets(piece.region, level, domain) for piece in self.pieces)

    def items(self, pieces: Sequence[Piece]) -> tuple[Item, ...]:
        """Return pieces summed up to items for the packer."""
        totals: dict[tuple[int, Region], int] = {}
        for piece in pieces:
            key = (self._problem.classes[piece.class_].shape, piece.region)
            totals[key] = totals.get(key, 0) + piece.pods
        return tuple(sorted(Item(shape, region, count) for (shape, region), count in totals.items()))

    def _packs(self, region: Region) -> bool:
        if len(self.pieces) == 1 and simple(region):
            return True
        items = self.items(self._sharing(region) if len(self.pieces) > 1 else self.pieces)
        if len(items) == 1:
            return self._packer.room(items[0].shape, items[0].region) >= items[0].pods
        counting = all(item.shape == items[0].shape and simple(item.region) for item in items)
        return counting or self._packer.pack(items) is not None

    def _sharing(self, region: Region) -> list[Piece]:
        """Return the pieces that may share a node with those of a region."""
        tops = [self.chain(piece.region) for piece in self.pieces]
        if any(len(chain) == 1 for chain in tops):
            return self.pieces
        own = self.chain(region)[-2]
        return [piece for piece, chain in zip(self.pieces, tops, strict=True) if chain[-2] == own]

    def _meets(self, region: Region, level: int, domain: int) -> bool:
        """Return whether a region and a domain share nodes, ignoring missing labels."""
        at, ours, theirs = max(region.level, level), {domain}, set(region.domains)
        while at > min(region.level, level):
            parent = self._tiers[at].parent
            if level == at:
                ours = {int(parent[one]) for one in ours}
                level -= 1
            else:
                theirs = {int(parent[one]) for one in theirs}
            at -= 1
        return region.level < 0 or bool(ours & theirs)

    def _book(self, chain: Sequence[tuple[int, int]], demand: Mapping[int, int], sign: int) -> None:
        for level, domain in chain:
            for measure, amount in demand.items():
                taken = self.taken.setdefault((level, measure), {})
                total = taken.get(domain, 0) + sign * amount
                if total:
                    taken[domain] = total
                else:
                    del taken[domain]


def simple(region: Region) -> bool:
    """Return whether a region is one domain: such regions are nested or disjoint."""
    return len(region.domains) == 1 and region.lacking < 0
