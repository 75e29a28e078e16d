"""The single domains that can hold a whole job, the best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.placement.packing.feasibility import Packer
from coterie.placement.problem import Problem
from coterie.placement.search.choice import least
from coterie.placement.search.compaction import fullest, fullness
from coterie.placement.search.job import Job
from coterie.placement.search.ledger import Ledger
from coterie.placement.search.outline import Outline
from coterie.placement.search.regions import CompactRegions
from coterie.placement.search.room import JobRoom
from coterie.placement.search.symmetry import Named, Symmetry
from coterie.topology.cluster import Ints


class Candidates:
    """The domains of a job's level that can hold it, by counting."""

    def __init__(
        self,
        problem: Problem,
        packer: Packer,
        outline: Outline,
        ledger: Ledger,
        room: JobRoom,
        regions: CompactRegions,
        symmetry: Symmetry,
    ) -> None:
        self._branches = problem.branches
        self._tiers = packer.capacity.domains.tiers
        self._packer = packer
        self._outline = outline
        self._ledger = ledger
        self._room = room
        self._regions = regions
        self._symmetry = symmetry

    def of(self, job: Job, named: Named) -> Iterator[int]:
        """Yield the domains that can hold a whole job by counting: those in use, then the best first, equals once.

        The best break up the least, where that is known beforehand, and are the tightest otherwise.
        """
        level = self._branches[job.branch].level
        domains, total, short = self._room.of(job)
        good = np.flatnonzero(short <= 0)
        homes = self._branches[job.branch].homes
        if not len(good):
            return
        room = self._room.by_level(job)
        keys = self._damage(job, domains[good]) if len(good) > 1 else []
        if not keys:
            if len(good) > 1 and (finer := self._regions.finer(job)):
                parts = self._regions.compaction(job, (level, *finer)).parts(0, domains[good], total[good])
                total[good] += parts * (int(total[good].max()) + 1)
            keys = [total[good]]
        seen: set[object] = set()
        if not homes:
            first = fullest(self._tiers, level, domains[good[least(keys)]], room)
            yield first
            seen.add(self._symmetry.twin(level, first, named))
            others = domains[good] != first
            good, keys = good[others], [key[others] for key in keys]
        around = fullness(self._tiers, level, domains[good], room)
        order = domains[good[np.lexsort((good, *reversed(around), *reversed(keys)))]].tolist()
        for domain in sorted(order, key=lambda domain: domain not in homes):
            twin = self._symmetry.twin(level, domain, named)
            if domain in homes or twin not in seen:
                seen.add(twin)
                yield domain

    def _damage(self, job: Job, domains: Ints) -> list[Ints]:
        """Return what a job breaks up in each domain, the most important first; nothing where its nodes are not known.

        They are known for a single pod, and for pods that have a node each. What counts is whether the domain is
        untouched and larger than the job, then the whole nodes, then the free GPUs in the domains around it, then those
        in itself.
        """
        capacity, level = self._packer.capacity, self._branches[job.branch].level
        shapes = self._outline.shapes(job.amounts)
        several = sum(shapes.values()) > 1
        if not capacity.domains.node_gpus or (several and self._regions.finer(job)):
            return []
        # Pods without GPUs break nothing up.
        gpus = {shape: amount for shape in shapes if (amount := self._packer.gpus(shape))}
        each = {shape: capacity.domains.node_gpus // amount for shape, amount in gpus.items()}  # pods on a whole node
        if not each or not all(each.values()) or (several and max(each.values()) > 1):
            return []
        wholeness, taken = capacity.wholeness(), self._taken_gpus(level)
        free = wholeness.gpus[level][domains] - taken[domains]
        whole = wholeness.whole_beside(level, taken)[domains]
        broken: Ints = np.zeros(len(domains), dtype=np.int64)
        for shape, most in each.items():
            partly = self._ledger.room(level, shape)[domains] - most * whole
            broken += np.maximum(-(-(shapes[shape] - partly) // most), 0)
        larger = free > sum(shapes[shape] * amount for shape, amount in gpus.items())
        split = (wholeness.untouched(level, domains) & (taken[domains] == 0) & larger).astype(np.int64)
        around = []
        while level:
            domains = self._tiers[level].parent[domains].astype(np.int64)
            level -= 1
            around.append((wholeness.gpus[level] - self._taken_gpus(level))[domains])
        return [split, broken, *around, free]

    def _taken_gpus(self, level: int) -> Ints:
        """Return the GPUs of each domain of a level that the commitments take."""
        taken: Ints = np.zeros(len(self._tiers[level]), dtype=np.int64)
        for shape in range(len(self._packer.fits)):
            pods = self._ledger.taken.get((level, shape))
            if pods and (gpus := self._packer.gpus(shape)):
                taken[list(pods)] += gpus * np.fromiter(pods.values(), dtype=np.int64)
        return taken
