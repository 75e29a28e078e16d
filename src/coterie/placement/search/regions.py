"""Regions of few domains for a job at the levels that it does not mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import Region
from coterie.placement.problem import Problem
from coterie.placement.search.compaction import Admits, Compaction, Demand
from coterie.placement.search.job import Job
from coterie.placement.search.ledger import Ledger
from coterie.placement.search.outline import Outline
from coterie.placement.search.room import JobRoom
from coterie.topology.cluster import Bools, Ints


class CompactRegions:
    """The compaction of jobs at unconstrained levels, from the room beside the commitments."""

    def __init__(self, problem: Problem, packer: Packer, outline: Outline, ledger: Ledger, room: JobRoom) -> None:
        self._branches = problem.branches
        self._unmentioned = problem.unmentioned
        self._tiers = packer.capacity.domains.tiers
        self._packer = packer
        self._outline = outline
        self._ledger = ledger
        self._room = room

    def finer(self, job: Job) -> Sequence[int]:
        """Return the unconstrained levels below a job's, where only they distinguish its domains."""
        if not self._unmentioned or self._outline.children[job.branch] or len(self._ledger.demand(job.amounts)) > 1:
            return ()
        return [level for level in self._unmentioned if level > self._branches[job.branch].level]

    def compact(self, job: Job) -> Iterator[Region]:
        """Yield regions of few domains for the tasks below an implied branch."""
        branch = self._branches[job.branch]
        return self.compaction(job, branch.implied, branch.near, self._admits(job)).regions()

    def compaction(
        self, job: Job, levels: Sequence[int], near: Sequence[int] = (), admits: Admits | None = None
    ) -> Compaction:
        """Return the compaction of a job at some levels, near some domains."""
        shapes = self._outline.shapes(job.amounts)
        demands = [
            Demand(amount, partial(self._ledger.room, measure=measure), pods=measure in shapes)
            for measure, amount in self._ledger.demand(job.amounts).items()
        ]
        fits = self._packer.fits[next(iter(shapes))].fits if len(demands) == 1 else None
        return Compaction(
            self._tiers, levels, partial(self._room.domains, job.region), demands, near=near, admits=admits, fits=fits
        )

    def _admits(self, job: Job) -> Admits | None:
        """Return a test whether domains of a level have enough finer domains for the required groups of a job."""
        sizes: dict[tuple[int, int], list[int]] = {}
        for child in self._outline.children[job.branch]:
            if self._branches[child].required:
                for measure, amount in self._ledger.demand(self._outline.within(child, job.amounts)).items():
                    sizes.setdefault((self._branches[child].level, measure), []).append(amount)
        if not sizes:
            return None

        def admits(level: int, domains: Ints) -> Bools:
            good = np.ones(len(domains), dtype=bool)
            tier = self._tiers[level]
            for (finer, measure), amounts in sizes.items():
                inside = tier.of[self._tiers[finer].start]
                room = np.maximum(self._ledger.room(finer, measure), 0)
                for size in set(amounts):
                    places = np.bincount(inside, room // size, len(tier))[domains]
                    good &= places >= sum(other >= size for other in amounts)
            return good

        return admits
