"""The choice of domains: a depth-first search over the branches of the constraint tree.

A job is to place some pods, all below one branch, inside a region. A required branch takes one domain. A preferred
branch takes one if possible, and several as far as the limit of its level allows: each domain after the first costs
one, and so does each pod on a node outside every domain of that level. Only the set of domains is chosen; the
assignment of pods to these domains is left to the packer, which checks every commitment.

Choice points are generators: each applies one option, yields the jobs that are left, and reverts the option when it is
asked for the next. States from which everything failed are remembered up to symmetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.placement.budget import CHOICE, Budget
from coterie.placement.capacity import Capacity
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import EVERYWHERE, Region
from coterie.placement.problem import ROOT, Problem
from coterie.placement.search.bounds import Bounds
from coterie.placement.search.candidates import Candidates
from coterie.placement.search.job import Agenda, Job
from coterie.placement.search.ledger import Ledger, Piece
from coterie.placement.search.limits import Limits
from coterie.placement.search.outline import Amounts, Outline
from coterie.placement.search.regions import CompactRegions
from coterie.placement.search.room import JobRoom
from coterie.placement.search.spreads import Spreads
from coterie.placement.search.symmetry import Symmetry


class Search:
    """The search for a placement of everything with at most `limits[level]` extra domains per level."""

    def __init__(
        self,
        problem: Problem,
        capacity: Capacity,
        limits: Mapping[int, int],
        packer: Packer,
        budget: Budget,
        *,
        implied: bool = False,
    ) -> None:
        self._branches = problem.branches
        self._outline = Outline.of(problem, limits, implied=implied)
        self._ledger = Ledger(problem, capacity, packer)
        self._packer = packer
        self._budget = budget
        self._limits = Limits(problem, self._outline, limits)
        self._symmetry = Symmetry(problem, capacity, self._outline, self._ledger, packer.rows)
        room = JobRoom(problem, capacity.domains, self._outline, self._ledger)
        self._regions = CompactRegions(problem, packer, self._outline, self._ledger, room)
        self._candidates = Candidates(problem, packer, self._outline, self._ledger, room, self._regions, self._symmetry)
        self._spreads = Spreads(problem, self._ledger, self._limits, room, self._regions, self._symmetry)
        self._bounds = Bounds(problem, packer, self._outline, self._ledger, self._limits, room)
        self._backtracked = False
        self._sound = self._limits.charge_anchors()
        self._charged = {level: limit - self._limits.extra[level] for level, limit in limits.items()}

    def run(self) -> list[Piece] | None:
        """Return pods bound to regions such that everything fits, or None when that is impossible."""
        if not self._sound or self._limits.exceeded:
            return None
        agenda = self._agenda()
        return self._solve(agenda) if agenda else []

    def hold_to_least(self) -> dict[int, int]:
        """Lower every limit to its lower bound, by counting, and return the limits.

        Running tasks are charged in any case; the bound is for the waiting ones, and is added to that charge.
        """
        needed = self._bounds.needed(self._agenda()) or {}
        self._limits.extra = {level: needed.get(level, 0) for level in self._limits.extra}
        return {level: extra + self._charged[level] for level, extra in self._limits.extra.items()}

    def _agenda(self) -> Agenda:
        outline = self._outline
        agenda = [Job(child, EVERYWHERE, outline.everything(child)) for child in outline.children[ROOT]]
        if outline.own[ROOT]:
            agenda.append(Job(ROOT, EVERYWHERE, outline.own_of(ROOT, outline.everything(ROOT))))
        return tuple(agenda)

    def _solve(self, agenda: Agenda) -> list[Piece] | None:
        if self._bounds.overfull(agenda):
            return None
        frames = [(agenda, self._options(agenda))]
        while frames:
            agenda, options = frames[-1]
            rest = next(options, None)
            if rest is None:
                frames.pop()
                self._backtracked = True
                self._symmetry.remember(self._state(agenda))
                continue
            if not rest:
                return list(self._ledger.pieces)
            if self._backtracked:
                if self._symmetry.failed(self._state(rest)) or self._bounds.infeasible(rest):
                    continue
                rest = self._hardest_first(rest)
            frames.append((rest, self._options(rest)))
        return None

    def _hardest_first(self, agenda: Agenda) -> Agenda:
        """Put the job with the fewest candidate domains first, since its failure shows soonest."""
        jobs = [job for job in agenda if job.branch != ROOT]
        if len(jobs) < 2:
            return agenda
        first = min(jobs, key=self._bounds.choices)
        return (first, *(job for job in agenda if job is not first))

    def _options(self, agenda: Agenda) -> Iterator[Agenda]:
        job, rest = agenda[0], agenda[1:]
        if job.branch == ROOT:
            yield from self._bind(job.amounts, EVERYWHERE, rest)
            return
        if self._branches[job.branch].implied:
            for region in self._regions.compact(job):
                yield from self._enter(job, region, rest)
            yield from self._enter(job, job.region, rest)
            return
        named = self._symmetry.named(rest)
        for domain in self._candidates.of(job, named):
            yield from self._put(job, (domain,), rest)
        if not self._branches[job.branch].required:
            for domains in self._spreads.of(job, lambda: self._bounds.needed(rest), named):
                yield from self._put(job, domains, rest)
            yield from self._outside(job, rest)

    def _put(self, job: Job, domains: tuple[int, ...], rest: Agenda) -> Iterator[Agenda]:
        """Place a job in some domains of its level and yield the remaining jobs."""
        branch = self._branches[job.branch]
        price = 0
        if not branch.required:
            price = self._limits.price(job.branch, domains)
            if price > self._limits.extra[branch.level]:
                return
            self._limits.extra[branch.level] -= price
        yield from self._enter(job, Region(branch.level, domains), rest)
        if price:
            self._limits.extra[branch.level] += price

    def _enter(self, job: Job, region: Region, rest: Agenda) -> Iterator[Agenda]:
        """Bind the pods directly on a job's branch to a region, and add its child branches as jobs inside it."""
        self._budget.spend(CHOICE)
        children = self._outline.children[job.branch]
        inner = (Job(child, region, self._outline.within(child, job.amounts)) for child in children)
        onward = (*(child for child in inner if child.amounts), *rest)
        yield from self._bind(self._outline.own_of(job.branch, job.amounts), region, onward)

    def _outside(self, job: Job, rest: Agenda) -> Iterator[Agenda]:
        """Place some pods of a preferred job on nodes outside every domain of its level; each counts as one domain."""
        level = self._branches[job.branch].level
        region = Region(job.region.level, job.region.domains, level)
        most = self._limits.affordable(job.branch)
        loosest = {shape: self._packer.room(shape, region) for shape in self._outline.shapes(job.amounts)}
        for part in self._parts(self._outline.separable(job.branch, job.amounts), loosest, most):
            self._budget.spend(CHOICE)
            extra, started = dict(self._limits.extra), set(self._limits.started)
            if self._limits.charge_outside(job.branch, part):
                left = _less(job.amounts, part)
                onward = ((job._replace(amounts=left), *rest)) if left else rest
                yield from self._bind(part, region, onward)
            self._limits.extra, self._limits.started = extra, started

    def _parts(self, classes: Amounts, room: Mapping[int, int], most: int) -> Iterator[Amounts]:
        """Yield the non-empty ways to take at most `most` pods from these classes that the room allows."""
        stack: list[tuple[int, Amounts]] = [(0, ())]
        while stack:
            at, part = stack.pop()
            if at == len(classes):
                if part:
                    yield part
                continue
            class_, pods = classes[at]
            spare = most - sum(count for _, count in part)
            for count in range(min(pods, spare), -1, -1):
                grown = (*part, (class_, count)) if count else part
                if all(total <= room[shape] for shape, total in self._outline.shapes(grown).items()):
                    stack.append((at + 1, grown))

    def _bind(self, amounts: Amounts, region: Region, onward: Agenda) -> Iterator[Agenda]:
        """Bind pods to a region; yield once if they fit with all earlier commitments."""
        mark = len(self._ledger.pieces)
        if all(self._ledger.commit(class_, region, pods) for class_, pods in amounts):
            yield onward
        self._ledger.undo(mark)

    def _state(self, agenda: Agenda) -> object:
        """Return a key of everything that decides how the search continues from here."""
        pending = {branch for job in agenda for branch in self._outline.preferred[job.branch]}
        started = tuple(sorted(pending & self._limits.started))
        return self._symmetry.state(agenda), tuple(sorted(self._limits.extra.items())), started


def _less(amounts: Amounts, part: Amounts) -> Amounts:
    taken = dict(part)
    return tuple((one, pods - taken.get(one, 0)) for one, pods in amounts if pods > taken.get(one, 0))
