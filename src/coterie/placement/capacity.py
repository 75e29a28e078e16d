"""The free capacity of every node, and per shape how many pods fit on each, kept up to date by deltas.

Arrays are indexed by position (see `coterie.topology.domains`). A `Fit` is made the first time a shape is requested;
afterwards a change on a few nodes updates only those nodes and the domains above them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.gang.tree import Gang, Shape
from coterie.placement.eligibility import eligible
from coterie.placement.problem import Problem, compile_gang
from coterie.placement.wholeness import Wholeness
from coterie.topology.cluster import PODS, Bools, Ints
from coterie.topology.domains import Domains

# How many compiled gangs are kept: enough for a queue that is retried in every cycle.
_COMPILED = 1024

Positions = npt.NDArray[np.int64]


@dataclass(eq=False, slots=True)
class Fit:
    """The number of pods of one shape that fit on each node, in each domain of each level, and in total."""

    rows: npt.NDArray[np.int64]  # the resources the shape requests
    need: Ints  # the amount of each, as a column
    mask: Bools  # nodes that are eligible for the shape
    fits: Ints
    sums: tuple[Ints, ...]  # per level, per domain
    total: int


class Capacity:
    """The free capacity of a cluster under a topology; mutable, so `copy` it before hypothetical changes."""

    def __init__(self, domains: Domains, free: Ints, usable: Bools, *, lift_transient: bool = False) -> None:
        self.domains = domains
        self.free = free
        self.usable = usable
        self.visible: Bools = np.ones(len(domains), dtype=bool)
        self.lift_transient = lift_transient
        self._fits: dict[Shape, Fit] = {}
        self._wholeness: Wholeness | None = None
        self._compiled: dict[int, tuple[Gang, Problem]] = {}

    @staticmethod
    def now(domains: Domains) -> Capacity:
        """Return the current free capacity: allocatable less requests, on nodes that are ready and schedulable."""
        cluster = domains.cluster
        free = cluster.allocatable - cluster.held(range(len(cluster.pods)))
        return Capacity(domains, free[:, domains.order], (cluster.ready & ~cluster.cordoned)[domains.order])

    @staticmethod
    def empty(domains: Domains) -> Capacity:
        """Return the capacity of an empty cluster: allocatable less DaemonSets, with every node in service."""
        cluster = domains.cluster
        free = cluster.allocatable - cluster.daemons
        usable = np.ones(len(domains), dtype=bool)
        return Capacity(domains, free[:, domains.order], usable, lift_transient=True)

    def copy(self) -> Capacity:
        """Return an independent capacity with the same content."""
        twin = Capacity(self.domains, self.free.copy(), self.usable.copy(), lift_transient=self.lift_transient)
        twin.visible = self.visible
        return twin

    def hide(self, hidden: Bools) -> None:
        """Hide nodes permanently, before the first request; unlike a cordon, nothing brings them back."""
        self.visible = self.visible & ~hidden

    def all_visible(self) -> Capacity:
        """Return an independent capacity with the same content, in which no node is hidden."""
        twin = self.copy()
        twin.visible = np.ones_like(self.visible)
        return twin

    def compiled(self, gang: Gang) -> Problem:
        """Return a gang without anchors compiled for this topology, cached by the identity of the object."""
        known = self._compiled.get(id(gang))
        if known is None or known[0] is not gang:
            if len(self._compiled) >= _COMPILED:
                self._compiled.clear()
            known = self._compiled[id(gang)] = (gang, compile_gang(gang, self.domains, {}))
        return known[1]

    def fit(self, shape: Shape) -> Fit:
        """Return the index of one shape, made on first use."""
        found = self._fits.get(shape)
        if found is None:
            found = self._fits[shape] = self._make(shape)
        return found

    def wholeness(self) -> Wholeness:
        """Return the index of free GPUs and whole nodes of a cluster with GPUs, made on first use."""
        if self._wholeness is None:
            self._wholeness = Wholeness(self.domains, self.free, self.usable & self.visible)
        return self._wholeness

    def take(self, shape: Shape, positions: Iterable[int], counts: Iterable[int]) -> None:
        """Charge `counts[i]` pods of a shape to the node at `positions[i]`; negative counts return capacity."""
        where = np.fromiter(positions, dtype=np.int64)
        amount = np.fromiter(counts, dtype=np.int64)
        cluster = self.domains.cluster
        for name, need in ((PODS, 1), *shape.requests):
            row = cluster.resource(name)
            if row >= 0:
                np.subtract.at(self.free[row], where, amount * need)
        self._refresh(np.unique(where))

    def give(self, amounts: Ints) -> None:
        """Add capacity given as [resource, position]; negative amounts remove it."""
        self.free += amounts
        self._refresh(np.flatnonzero(amounts.any(axis=0)))

    def open(self, positions: Iterable[int]) -> None:
        """Return nodes to service, as if they were uncordoned."""
        where = np.fromiter(positions, dtype=np.int64)
        self.usable[where] = True
        self._refresh(where)

    def _make(self, shape: Shape) -> Fit:
        cluster = self.domains.cluster
        asked = [(cluster.resource(name), need) for name, need in ((PODS, 1), *shape.requests)]
        known = all(row >= 0 for row, _ in asked)
        rows = np.array([row for row, _ in asked if row >= 0], dtype=np.int64)
        need = np.array([[need] for row, need in asked if row >= 0], dtype=np.int64)
        mask = eligible(shape, cluster, lift_transient=self.lift_transient)[self.domains.order] & known & self.visible
        fits = _count(self.free[rows], need, mask & self.usable)
        sums = tuple(tier.sums(fits) for tier in self.domains.tiers)
        return Fit(rows, need, mask, fits, sums, int(fits.sum()))

    def _refresh(self, where: Positions) -> None:
        memberships = [tier.membership(where) for tier in self.domains.tiers]
        usable = self.usable[where]
        if self._wholeness is not None:
            self._wholeness.refresh(where, self.free[:, where], usable & self.visible[where], memberships)
        for fit in self._fits.values():
            fresh = _count(self.free[fit.rows[:, np.newaxis], where], fit.need, fit.mask[where] & usable)
            delta = fresh - fit.fits[where]
            fit.fits[where] = fresh
            fit.total += int(delta.sum())
            for (labelled, inside), sums in zip(memberships, fit.sums, strict=True):
                np.add.at(sums, inside, delta[labelled])


def _count(free: Ints, need: Ints, mask: Bools) -> Ints:
    counts: Ints = (free // need).min(axis=0)
    np.maximum(counts, 0, out=counts)
    counts[~mask] = 0
    return counts
