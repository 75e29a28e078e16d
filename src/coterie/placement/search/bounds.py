"""Lower bounds by counting: what rules out the waiting jobs, and how many extra domains they need at least.

Every bound is a relaxation: it may allow infeasible placements, but forbids no feasible one. So a job that it rules out
is infeasible. All of them start from the room of the ledger, which is never less than the real room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import Region
from coterie.placement.problem import ROOT, Problem
from coterie.placement.search.choice import Rival, fewest, fewest_extra
from coterie.placement.search.job import Agenda, Job
from coterie.placement.search.ledger import Ledger, Piece
from coterie.placement.search.limits import Limits
from coterie.placement.search.outline import Amounts, Outline
from coterie.placement.search.room import JobRoom
from coterie.topology.cluster import Ints


class Bounds:
    """The bounds of a search, from its commitments and limits."""

    def __init__(
        self, problem: Problem, packer: Packer, outline: Outline, ledger: Ledger, limits: Limits, room: JobRoom
    ) -> None:
        self._branches = problem.branches
        self._packer = packer
        self._outline = outline
        self._ledger = ledger
        self._limits = limits
        self._room = room

    def infeasible(self, agenda: Agenda) -> bool:
        """Return whether counting proves that the waiting jobs cannot be placed with the room and limits left."""
        stuck = any(
            job.branch != ROOT and self._branches[job.branch].required and not self.choices(job) for job in agenda
        )
        return stuck or self._over_limits(agenda) or self._too_many_groups(agenda) or self.overfull(agenda)

    def overfull(self, agenda: Agenda) -> bool:
        """Return whether the waiting jobs do not fit beside the commitments, even anywhere in their regions.

        This is a bound because every placement of the jobs puts their pods somewhere in their regions.
        """
        if len(self._packer.fits) == 1:
            return False  # for one shape the ledger has counted
        waiting = [Piece(class_, job.region, pods) for job in agenda for class_, pods in job.amounts]
        return self._packer.pack(self._ledger.items([*self._ledger.pieces, *waiting])) is None

    def choices(self, job: Job) -> int:
        """Return the number of domains that could hold a whole job; jobs that may be spread can wait."""
        if self._branches[job.branch].implied:
            return len(self._packer.capacity.domains)
        domains, _, short = self._room.of(job)
        spare = 0 if self._branches[job.branch].required else self._limits.extra[self._branches[job.branch].level]
        return int((short <= 0).sum()) + spare * len(domains)

    def _over_limits(self, agenda: Agenda) -> bool:
        """Return whether the waiting preferred groups need more extra domains than are left."""
        needed = self.needed(agenda)
        return needed is None or any(extra > self._limits.extra[level] for level, extra in needed.items())

    def needed(self, agenda: Agenda) -> dict[int, int] | None:
        """Return the least number of extra domains per level that the waiting jobs need; None when they cannot fit.

        Groups are added up that have no pod in common, or that pay for themselves: each extra domain is paid by one
        group, and no group's share is counted twice.
        """
        # A group inside another of the same level does not compete with it: the room it takes is the other's too.
        waiting: dict[tuple[int, int, Region], list[tuple[int, int, Mapping[int, int]]]] = {}
        for job in agenda:
            for branch in self._outline.preferred[job.branch]:
                amounts = self._outline.within(branch, job.amounts)
                if not amounts:
                    continue
                price = self._least(branch, job.region, amounts)
                if price is None:
                    return None
                here = (self._branches[branch].level, self._outline.depth[branch], job.region)
                waiting.setdefault(here, []).append((branch, price, self._ledger.demand(amounts)))
        needed = dict.fromkeys(self._limits.extra, 0)
        for (level, _, region), groups in waiting.items():
            needed[level] += self._least_together(level, region, groups)
        return needed

    def _least_together(self, level: int, region: Region, groups: Sequence[tuple[int, int, Mapping[int, int]]]) -> int:
        """Return the least number of extra domains that groups competing for the same ones need, by any measure.

        A domain in which tasks of one of them already run counts as free for all of them, although it is free only for
        that one: this can only lower the bound. Every other domain that they use is paid by at least one of them.
        """
        alone = sum(price for _, price, _ in groups)
        if len(groups) < 2:
            return alone
        homes = np.isin(
            self._room.domains(region, level), list({one for b, _, _ in groups for one in self._branches[b].homes})
        )
        most = alone
        for measure in {measure for _, _, need in groups for measure in need}:
            rivals = [
                Rival(need[measure], price, self._limits.first_free(branch))
                for branch, price, need in groups
                if measure in need
            ]
            others = alone - sum(rival.alone for rival in rivals)
            places = self._places(level, measure, region, sum(rival.size for rival in rivals))
            given = int(places[: len(homes)][homes].sum())
            most = max(most, others + fewest_extra(np.delete(places, np.flatnonzero(homes)), rivals, given))
        return most

    def _places(self, level: int, measure: int, region: Region, wanted: int) -> Ints:
        """Return the room of every domain of a level in a region, and one entry for every pod that fits outside all."""
        room = np.maximum(self._ledger.room(level, measure)[self._room.domains(region, level)], 0)
        heaviest = self._packer.heaviest(measure)
        outside = self._packer.room(measure, Region(region.level, region.domains, level))
        # Light pods may fit in greater number than the heaviest would, but no more than the demand matters.
        loose = min(outside, wanted) if heaviest == 1 else min(outside, -(-wanted // heaviest))
        return np.concatenate((room, np.full(loose, heaviest, dtype=np.int64)))

    def _least(self, branch: int, region: Region, amounts: Amounts) -> int | None:
        """Return the least number of extra domains that a branch needs; None when it does not fit at all.

        The domains in which its tasks already run are filled first, at no cost. Its first domain is free as long as it
        has no pod anywhere. The region may be larger than the one really open to the branch.
        """
        level, at_home = self._branches[branch].level, self._branches[branch].homes
        homes = np.flatnonzero(np.isin(self._room.domains(region, level), list(at_home))) if at_home else ()
        count = 0
        for measure, amount in self._ledger.demand(amounts).items():
            places, short = self._places(level, measure, region, amount), amount
            if len(homes):
                short -= int(places[homes].sum())
                places = np.delete(places, homes)
            if short > 0:
                more = fewest(places, short)
                if more is None:
                    return None
                count = max(count, more)
        return max(0, count - self._limits.first_free(branch))

    def _too_many_groups(self, agenda: Agenda) -> bool:
        """Return whether the required groups that wait in one region cannot all find a domain there.

        A domain with room r takes at most r // s groups of size s or more. That some groups are bound to the domain in
        which they already run only reduces their choice.
        """
        waiting: dict[tuple[Region, int, int], list[int]] = {}
        for job in agenda:
            branch = self._branches[job.branch]
            if job.branch != ROOT and branch.required:
                for measure, amount in self._ledger.demand(job.amounts).items():
                    waiting.setdefault((job.region, branch.level, measure), []).append(amount)
        for (region, level, measure), sizes in waiting.items():
            if len(sizes) < 2:
                continue
            room = np.maximum(self._ledger.room(level, measure)[self._room.domains(region, level)], 0)
            if sum(sizes) > room.sum():
                return True
            for size in set(sizes):
                if sum(other >= size for other in sizes) > (room // size).sum():
                    return True
        return False
