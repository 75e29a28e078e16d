"""The domains that are open to a job, and their room for it beside the commitments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coterie.placement.packing.node_table import Region
from coterie.placement.problem import Problem
from coterie.placement.search.job import Job
from coterie.placement.search.ledger import Ledger
from coterie.placement.search.outline import Outline
from coterie.topology.cluster import Ints
from coterie.topology.domains import Domains


class JobRoom:
    """The room of domains for whole jobs, by counting: never less than the real room."""

    def __init__(self, problem: Problem, domains: Domains, outline: Outline, ledger: Ledger) -> None:
        self._branches = problem.branches
        self._domains = domains
        self._outline = outline
        self._ledger = ledger
        self._ranges: dict[tuple[Region, int], Ints] = {}

    def domains(self, region: Region, level: int) -> Ints:
        """Return the domains of a level inside a region."""
        if (region, level) not in self._ranges:
            inside = self._domains.inside(region.level, region.domains, level)
            self._ranges[region, level] = inside if region.lacking < 0 else inside[:0]
        return self._ranges[region, level]

    def of(self, job: Job) -> tuple[Ints, Ints, Ints]:
        """Return the domains open to a job, their total room for it, and how far each is from holding it whole."""
        branch = self._branches[job.branch]
        domains = self.domains(job.region, branch.level)
        if branch.required and branch.anchored:
            domains = domains[domains == branch.anchored[0]]
        demand = self._ledger.demand(job.amounts)
        if len(demand) == 1:
            ((measure, amount),) = demand.items()
            room = self._ledger.room(branch.level, measure)[domains]
            return domains, room, amount - room
        total: Ints = np.zeros(len(domains), dtype=np.int64)
        short: Ints = np.zeros(len(domains), dtype=np.int64)
        shapes = self._outline.shapes(job.amounts)
        for measure, amount in demand.items():
            room = self._ledger.room(branch.level, measure)[domains]
            short = np.maximum(short, amount - room)
            if measure in shapes:
                total += room
        return domains, total, short

    def by_level(self, job: Job) -> Callable[[int], Ints]:
        """Return the room of every domain of a level for all shapes of a job together, by level."""
        shapes = self._outline.shapes(job.amounts)
        return lambda level: np.sum([self._ledger.room(level, shape) for shape in shapes], axis=0)
