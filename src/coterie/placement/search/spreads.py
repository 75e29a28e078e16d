"""The sets of several domains that a preferred job can be spread over, the smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from coterie.placement.problem import Problem
from coterie.placement.search.choice import fewest, tightest
from coterie.placement.search.job import Job
from coterie.placement.search.ledger import Ledger
from coterie.placement.search.limits import Limits
from coterie.placement.search.regions import CompactRegions
from coterie.placement.search.room import JobRoom
from coterie.placement.search.symmetry import Named, Symmetry
from coterie.topology.cluster import Ints


class Spreads:
    """The sets of domains of a job's level that can hold it together, by counting."""

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        limits: Limits,
        room: JobRoom,
        regions: CompactRegions,
        symmetry: Symmetry,
    ) -> None:
        self._branches = problem.branches
        self._unmentioned = problem.unmentioned
        self._ledger = ledger
        self._limits = limits
        self._room = room
        self._regions = regions
        self._symmetry = symmetry

    def of(self, job: Job, reserved: Callable[[], Mapping[int, int] | None], named: Named) -> Iterator[tuple[int, ...]]:
        """Yield sets of two or more domains that can hold a preferred job by counting, smallest sets first.

        `reserved` gives the extra domains per level that the other jobs need; it is asked only where it matters.
        """
        branch = self._branches[job.branch]
        most = self._limits.affordable(job.branch)
        if most < 2 and not branch.homes:
            return
        domains, total, _ = self._room.of(job)
        need = self._ledger.demand(job.amounts)
        if len(need) == 1 and not branch.homes:
            ((_, pods),) = need.items()
            count = fewest(total, pods)
            if count is None:
                return
            if 2 <= count <= most:
                yield from self._spread(job, domains, total, pods, count)
        others = reserved()
        if others is None:
            return
        most -= others[branch.level]
        roomiest = domains[np.argsort(-total, kind="stable")][: int((total > 0).sum())].tolist()
        homes = [domain for domain in roomiest if domain in branch.homes]
        order = [domain for domain in roomiest if domain not in branch.homes]
        for size in range(max(0, 2 - len(homes)), min(most, len(order)) + 1):
            for chosen in self.sets(branch.level, order, size, need, homes, named):
                yield tuple(sorted((*homes, *chosen)))

    def _spread(self, job: Job, domains: Ints, total: Ints, pods: int, count: int) -> Iterator[tuple[int, ...]]:
        """Yield the best set of `count` domains: in few of the unconstrained coarser domains, then tightest."""
        level = self._branches[job.branch].level
        levels = [other for other in self._unmentioned if job.region.level < other < level]
        region = self._regions.compaction(job, [*levels, level]).best(several=True)
        if region is not None and region.level == level and len(region.domains) == count:
            yield region.domains
        tight = tuple(sorted(int(domains[at]) for at, _ in tightest(total, pods)))
        if region is None or region.domains != tight:
            yield tight

    def sets(
        self,
        level: int,
        order: Sequence[int],
        size: int,
        need: Mapping[int, int],
        homes: Sequence[int],
        named: Named,
    ) -> Iterator[tuple[int, ...]]:
        """Yield the sets of `size` domains whose room adds up to the demand, up to the exchange of equal domains.

        Of sets that such an exchange turns into each other, the first in order is yielded, and few others. A domain is
        left out if it is equal to one that was left out before: exchanging the two, with the earlier choices fixed,
        gives an earlier set. The earlier choices stay fixed because the domains around them are named: two racks of one
        zone are not two racks of different zones. The homes are in every set, so they are chosen from the start.
        """
        room = {measure: self._ledger.room(level, measure) for measure in need}
        short = {measure: amount - int(room[measure][list(homes)].sum()) for measure, amount in need.items()}
        fixed = named.union(*(self._symmetry.around(level, home) for home in homes))
        stack: list[tuple[int, tuple[int, ...], frozenset[object], Named]] = [(0, (), frozenset(), fixed)]
        while stack:
            at, chosen, skipped, fixed = stack.pop()
            left = size - len(chosen)
            later = list(order[at:])
            if len(later) < left or any(
                room[measure][list(chosen)].sum() + np.sort(room[measure][later])[::-1][:left].sum() < amount
                for measure, amount in short.items()
            ):
                continue
            if not left:
                yield chosen
                continue
            twin = self._symmetry.twin(level, order[at], fixed)
            stack.append((at + 1, chosen, skipped | {twin}, fixed))
            if twin not in skipped:
                around = self._symmetry.around(level, order[at])
                stack.append((at + 1, (*chosen, order[at]), skipped, fixed if around <= fixed else fixed | around))
