"""The choice of domains: a depth-first search over the branches of the constraint tree.

A job is to place some pods, all below one branch, inside a region. A required branch takes one domain. A preferred
branch takes one if possible, and several as far as the limit of its level allows: each domain after the first costs
one, and so does each pod on a node outside every domain of that level. Only the set of domains is chosen; the
assignment of pods to these domains is left to the packer, which checks every commitment.

Choice points are generators: each applies one option, yields the jobs that are left, and reverts the option when it is
asked for the next. States from which everything failed are remembered up to symmetry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from coterie.placement.budget import CHOICE, Budget
from coterie.placement.capacity import Capacity
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import EVERYWHERE, Region
from coterie.placement.problem import ROOT, Problem
from coterie.placement.search.choice import Rival, fewest, fewest_extra, least, tightest
from coterie.placement.search.compaction import Admits, Compaction, Demand, fullest, fullness
from coterie.placement.search.job import Agenda, Job
from coterie.placement.search.ledger import Ledger, Piece
from coterie.placement.search.outline import Amounts, Outline
from coterie.placement.search.symmetry import Named, Symmetry
from coterie.topology.cluster import Bools, Ints


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
        self._unmentioned = problem.unmentioned
        self._domains = capacity.domains
        self._tiers = capacity.domains.tiers
        self._outline = Outline.of(problem, limits, implied=implied)
        self._ledger = Ledger(problem, capacity, packer)
        self._packer = packer
        self._budget = budget
        self._symmetry = Symmetry(problem, capacity, self._outline, self._ledger, packer.rows)
        self._extra = dict(limits)
        self._started: set[int] = set()  # preferred branches that have a pod somewhere before their job is reached
        self._ranges: dict[tuple[Region, int], Ints] = {}
        self._backtracked = False
        self._sound = self._charge_anchors()
        self._charged = {level: limit - self._extra[level] for level, limit in limits.items()}

    def run(self) -> list[Piece] | None:
        """Return pods bound to regions such that everything fits, or None when that is impossible."""
        if not self._sound or min(self._extra.values(), default=0) < 0:
            return None
        agenda = self._agenda()
        return self._solve(agenda) if agenda else []

    def hold_to_least(self) -> dict[int, int]:
        """Lower every limit to its lower bound, by counting, and return the limits.

        Running tasks are charged in any case; the bound is for the waiting ones, and is added to that charge.
        """
        needed = self._needed(self._agenda()) or {}
        self._extra = {level: needed.get(level, 0) for level in self._extra}
        return {level: extra + self._charged[level] for level, extra in self._extra.items()}

    def _agenda(self) -> Agenda:
        outline = self._outline
        agenda = [Job(child, EVERYWHERE, outline.everything(child)) for child in outline.children[ROOT]]
        if outline.own[ROOT]:
            agenda.append(Job(ROOT, EVERYWHERE, outline.own_of(ROOT, outline.everything(ROOT))))
        return tuple(agenda)

    def _solve(self, agenda: Agenda) -> list[Piece] | None:
        if self._overfull(agenda):
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
                if self._symmetry.failed(self._state(rest)) or self._infeasible(rest):
                    continue
                rest = self._hardest_first(rest)
            frames.append((rest, self._options(rest)))
        return None

    def _charge_anchors(self) -> bool:
        """Charge the running tasks; return False when they break a required branch.

        A preferred branch with running tasks has started: its first domain is paid for, and only the domains in which
        it runs are free.
        """
        for number, branch in enumerate(self._branches):
            if branch.required:
                if len(set(branch.anchored)) > 1 or -1 in branch.anchored:
                    return False
            elif branch.anchored and branch.level in self._extra:
                self._started.add(number)
                self._extra[branch.level] -= len(branch.homes) + branch.anchored.count(-1) - 1
        return True

    # --- options -------------------------------------------------------------------------------------------------

    def _options(self, agenda: Agenda) -> Iterator[Agenda]:
        job, rest = agenda[0], agenda[1:]
        if job.branch == ROOT:
            yield from self._bind(job.amounts, EVERYWHERE, rest)
            return
        if self._branches[job.branch].implied:
            for region in self._compact(job):
                yield from self._enter(job, region, rest)
            yield from self._enter(job, job.region, rest)
            return
        named = self._symmetry.named(rest)
        for domain in self._candidates(job, named):
            yield from self._put(job, (domain,), rest)
        if not self._branches[job.branch].required:
            for domains in self._spreads(job, rest, named):
                yield from self._put(job, domains, rest)
            yield from self._outside(job, rest)

    def _put(self, job: Job, domains: tuple[int, ...], rest: Agenda) -> Iterator[Agenda]:
        """Place a job in some domains of its level and yield the remaining jobs."""
        branch = self._branches[job.branch]
        price = 0
        if not branch.required:
            price = len(set(domains) - branch.homes) - (job.branch not in self._started)
            if price > self._extra[branch.level]:
                return
            self._extra[branch.level] -= price
        yield from self._enter(job, Region(branch.level, domains), rest)
        if price:
            self._extra[branch.level] += price

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
        most = self._extra[level] + (job.branch not in self._started)
        loosest = {shape: self._packer.room(shape, region) for shape in self._outline.shapes(job.amounts)}
        for part in self._parts(self._outline.separable(job.branch, job.amounts), loosest, most):
            self._budget.spend(CHOICE)
            extra, started = dict(self._extra), set(self._started)
            if self._charge_outside(job.branch, part):
                left = _less(job.amounts, part)
                onward = ((job._replace(amounts=left), *rest)) if left else rest
                yield from self._bind(part, region, onward)
            self._extra, self._started = extra, started

    def _bind(self, amounts: Amounts, region: Region, onward: Agenda) -> Iterator[Agenda]:
        """Bind pods to a region; yield once if they fit with all earlier commitments."""
        mark = len(self._ledger.pieces)
        if all(self._ledger.commit(class_, region, pods) for class_, pods in amounts):
            yield onward
        self._ledger.undo(mark)

    # --- candidates ----------------------------------------------------------------------------------------------

    def _range(self, region: Region, level: int) -> Ints:
        """Return the domains of a level inside a region."""
        if (region, level) not in self._ranges:
            inside = self._domains.inside(region.level, region.domains, level)
            self._ranges[region, level] = inside if region.lacking < 0 else inside[:0]
        return self._ranges[region, level]

    def _room(self, job: Job) -> tuple[Ints, Ints, Ints]:
        """Return the domains open to a job, their total room for it, and how far each is from holding it whole."""
        branch = self._branches[job.branch]
        domains = self._range(job.region, branch.level)
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

    def _candidates(self, job: Job, named: Named) -> Iterator[int]:
        """Yield the domains that can hold a whole job by counting: those in use, then the best first, equals once.

        The best break up the least, where that is known beforehand, and are the tightest otherwise.
        """
        level = self._branches[job.branch].level
        domains, total, short = self._room(job)
        good = np.flatnonzero(short <= 0)
        homes = self._branches[job.branch].homes
        if not len(good):
            return
        room = self._rooms(job)
        keys = self._damage(job, domains[good]) if len(good) > 1 else []
        if not keys:
            if len(good) > 1 and (finer := self._finer(job)):
                parts = self._compaction(job, (level, *finer)).parts(0, domains[good], total[good])
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
        if not capacity.domains.node_gpus or (several and self._finer(job)):
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

    def _finer(self, job: Job) -> Sequence[int]:
        """Return the unconstrained levels below a job's, where only they distinguish its domains."""
        if not self._unmentioned or self._outline.children[job.branch] or len(self._ledger.demand(job.amounts)) > 1:
            return ()
        return [level for level in self._unmentioned if level > self._branches[job.branch].level]

    def _rooms(self, job: Job) -> Callable[[int], Ints]:
        """Return the room of every domain of a level for all shapes of a job together, by level."""
        shapes = self._outline.shapes(job.amounts)
        return lambda level: np.sum([self._ledger.room(level, shape) for shape in shapes], axis=0)

    def _compact(self, job: Job) -> Iterator[Region]:
        """Yield regions of few domains for the tasks below an implied branch."""
        branch = self._branches[job.branch]
        return self._compaction(job, branch.implied, branch.near, self._admits(job)).regions()

    def _compaction(
        self, job: Job, levels: Sequence[int], near: Sequence[int] = (), admits: Admits | None = None
    ) -> Compaction:
        shapes = self._outline.shapes(job.amounts)
        demands = [
            Demand(amount, partial(self._ledger.room, measure=measure), pods=measure in shapes)
            for measure, amount in self._ledger.demand(job.amounts).items()
        ]
        fits = self._packer.fits[next(iter(shapes))].fits if len(demands) == 1 else None
        return Compaction(
            self._tiers, levels, partial(self._range, job.region), demands, near=near, admits=admits, fits=fits
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

    def _spreads(self, job: Job, rest: Agenda, named: Named) -> Iterator[tuple[int, ...]]:
        """Yield sets of two or more domains that can hold a preferred job by counting, smallest sets first."""
        branch = self._branches[job.branch]
        most = self._extra[branch.level] + (job.branch not in self._started)
        if most < 2 and not branch.homes:
            return
        domains, total, _ = self._room(job)
        need = self._ledger.demand(job.amounts)
        if len(need) == 1 and not branch.homes:
            ((_, pods),) = need.items()
            count = fewest(total, pods)
            if count is None:
                return
            if 2 <= count <= most:
                yield from self._spread(job, domains, total, pods, count)
        # The lower bound of the other jobs is reserved for them.
        others = self._needed(rest)
        if others is None:
            return
        most -= others[branch.level]
        roomiest = domains[np.argsort(-total, kind="stable")][: int((total > 0).sum())].tolist()
        homes = [domain for domain in roomiest if domain in branch.homes]
        order = [domain for domain in roomiest if domain not in branch.homes]
        for size in range(max(0, 2 - len(homes)), min(most, len(order)) + 1):
            for chosen in self._sets(branch.level, order, size, need, homes, named):
                yield tuple(sorted((*homes, *chosen)))

    def _spread(self, job: Job, domains: Ints, total: Ints, pods: int, count: int) -> Iterator[tuple[int, ...]]:
        """Yield the best set of `count` domains: in few of the unconstrained coarser domains, then tightest."""
        level = self._branches[job.branch].level
        levels = [other for other in self._unmentioned if job.region.level < other < level]
        region = self._compaction(job, [*levels, level]).best(several=True)
        if region is not None and region.level == level and len(region.domains) == count:
            yield region.domains
        tight = tuple(sorted(int(domains[at]) for at, _ in tightest(total, pods)))
        if region is None or region.domains != tight:
            yield tight

    def _sets(
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

    # --- bounds --------------------------------------------------------------------------------------------------

    def _hardest_first(self, agenda: Agenda) -> Agenda:
        """Put the job with the fewest candidate domains first, since its failure shows soonest."""
        jobs = [job for job in agenda if job.branch != ROOT]
        if len(jobs) < 2:
            return agenda
        first = min(jobs, key=self._choices)
        return (first, *(job for job in agenda if job is not first))

    def _choices(self, job: Job) -> int:
        """Return the number of domains that could hold a whole job; jobs that may be spread can wait."""
        if self._branches[job.branch].implied:
            return len(self._domains)
        domains, _, short = self._room(job)
        spare = 0 if self._branches[job.branch].required else self._extra[self._branches[job.branch].level]
        return int((short <= 0).sum()) + spare * len(domains)

    def _infeasible(self, agenda: Agenda) -> bool:
        """Return whether counting proves that the waiting jobs cannot be placed with the room and limits left.

        Every bound is a relaxation: it may allow infeasible placements, but forbids no feasible one. So a job that it
        rules out is infeasible. All of them start from the room of the ledger, which is never less than the real room.
        """
        stuck = any(
            job.branch != ROOT and self._branches[job.branch].required and not self._choices(job) for job in agenda
        )
        return stuck or self._over_limits(agenda) or self._too_many_groups(agenda) or self._overfull(agenda)

    def _overfull(self, agenda: Agenda) -> bool:
        """Return whether the waiting jobs do not fit beside the commitments, even anywhere in their regions.

        This is a bound because every placement of the jobs puts their pods somewhere in their regions.
        """
        if len(self._packer.fits) == 1:
            return False  # for one shape the ledger has counted
        waiting = [Piece(class_, job.region, pods) for job in agenda for class_, pods in job.amounts]
        return self._packer.pack(self._ledger.items([*self._ledger.pieces, *waiting])) is None

    def _over_limits(self, agenda: Agenda) -> bool:
        """Return whether the waiting preferred groups need more extra domains than are left."""
        needed = self._needed(agenda)
        return needed is None or any(extra > self._extra[level] for level, extra in needed.items())

    def _needed(self, agenda: Agenda) -> dict[int, int] | None:
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
        needed = dict.fromkeys(self._extra, 0)
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
            self._range(region, level), list({one for b, _, _ in groups for one in self._branches[b].homes})
        )
        most = alone
        for measure in {measure for _, _, need in groups for measure in need}:
            rivals = [
                Rival(need[measure], price, branch not in self._started)
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
        room = np.maximum(self._ledger.room(level, measure)[self._range(region, level)], 0)
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
        homes = np.flatnonzero(np.isin(self._range(region, level), list(at_home))) if at_home else ()
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
        return max(0, count - (branch not in self._started))

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
            room = np.maximum(self._ledger.room(level, measure)[self._range(region, level)], 0)
            if sum(sizes) > room.sum():
                return True
            for size in set(sizes):
                if sum(other >= size for other in sizes) > (room // size).sum():
                    return True
        return False

    # --- bookkeeping ---------------------------------------------------------------------------------------------

    def _charge_outside(self, branch: int, amounts: Amounts) -> bool:
        """Charge a preferred branch, and those below it, one domain for each of these pods."""
        if not self._branches[branch].implied:
            level = self._branches[branch].level
            self._extra[level] -= sum(pods for _, pods in amounts) - (branch not in self._started)
            self._started.add(branch)
            if self._extra[level] < 0:
                return False
        return all(
            self._charge_outside(child, inside)
            for child in self._outline.children[branch]
            if (inside := self._outline.within(child, amounts))
        )

    def _state(self, agenda: Agenda) -> object:
        """Return a key of everything that decides how the search continues from here."""
        pending = {branch for job in agenda for branch in self._outline.preferred[job.branch]}
        started = tuple(sorted(pending & self._started))
        return self._symmetry.state(agenda), tuple(sorted(self._extra.items())), started


def _less(amounts: Amounts, part: Amounts) -> Amounts:
    taken = dict(part)
    return tuple((one, pods - taken.get(one, 0)) for one, pods in amounts if pods > taken.get(one, 0))
