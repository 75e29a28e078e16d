"""Choosing domains: a depth-first search over the branches of the constraint tree.

A job is "put these pods, all below one branch, somewhere inside this region". A required branch takes one domain. A
preferred branch takes one too if it can, and is spread over several as far as the limit of its level allows: each
domain after the first costs one, and so does each pod on a node outside every domain of that level. Pods without a
branch of their own are bound to their region and the ledger checks that they fit.

Choice points are generators: each applies one option, yields the jobs that are left, and takes the option back when
it is asked for the next. States from which everything failed are remembered up to symmetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.choosing import fewest, tightest
from coterie.placement.job import Agenda, Job
from coterie.placement.ledger import Ledger, Piece
from coterie.placement.outline import Amounts, Outline
from coterie.placement.packing import EVERYWHERE, Packer, Region
from coterie.placement.problem import ROOT, Problem
from coterie.placement.symmetry import Symmetry
from coterie.topology.cluster import Ints


class Search:
    """Answers one question: can everything be placed with at most `limits[level]` extra domains per level?"""

    def __init__(
        self, problem: Problem, capacity: Capacity, limits: Mapping[int, int], packer: Packer, budget: Budget
    ) -> None:
        self._branches = problem.branches
        self._tiers = capacity.domains.tiers
        self._outline = Outline(problem, limits)
        self._ledger = Ledger(problem, capacity, packer)
        self._packer = packer
        self._budget = budget
        self._symmetry = Symmetry(problem, capacity, self._outline, self._ledger)
        self._extra = dict(limits)
        self._used: dict[int, frozenset[int]] = {}
        self._started: set[int] = set()  # preferred branches with a pod somewhere, inside a domain or outside all
        self._backtracked = False

    def run(self) -> list[Piece] | None:
        """Return pods bound to regions such that everything fits, or None when that is impossible."""
        if not self._take_anchors_in():
            return None
        outline = self._outline
        agenda = [Job(child, EVERYWHERE, outline.everything(child)) for child in outline.children[ROOT]]
        if outline.own[ROOT]:
            own = set(outline.own[ROOT])
            loose = tuple(pair for pair in outline.everything(ROOT) if pair[0] in own)
            agenda.append(Job(ROOT, EVERYWHERE, loose))
        if not agenda:
            return []
        return self._solve(tuple(agenda))

    def _solve(self, agenda: Agenda) -> list[Piece] | None:
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
            if self._backtracked and (self._symmetry.failed(self._state(rest)) or self._hopeless(rest)):
                continue
            frames.append((rest, self._options(rest)))
        return None

    def _take_anchors_in(self) -> bool:
        """Charge what already runs; False when it breaks a required branch or uses up a limit."""
        for number, branch in enumerate(self._branches):
            if not branch.anchored:
                continue
            if branch.required:
                if len(set(branch.anchored)) > 1 or -1 in branch.anchored:
                    return False
            elif branch.level in self._extra:
                real = frozenset(domain for domain in branch.anchored if domain >= 0)
                self._used[number] = real
                self._started.add(number)
                self._extra[branch.level] -= len(real) + branch.anchored.count(-1) - 1
                if self._extra[branch.level] < 0:
                    return False
        return True

    # --- options -------------------------------------------------------------------------------------------------

    def _options(self, agenda: Agenda) -> Iterator[Agenda]:
        job, rest = agenda[0], agenda[1:]
        if job.branch == ROOT:
            mark = len(self._ledger.pieces)
            self._budget.spend()
            if self._bind(job.amounts, EVERYWHERE):
                yield rest
            self._ledger.undo(mark)
        elif self._branches[job.branch].required:
            yield from self._together(job, rest)
        else:
            yield from self._together(job, rest)
            yield from self._apart(job, rest)

    def _together(self, job: Job, rest: Agenda) -> Iterator[Agenda]:
        """Put the whole job into one domain, the tightest first."""
        for domain in self._candidates(job):
            yield from self._put(job, domain, job.amounts, rest)

    def _put(self, job: Job, domain: int, amounts: Amounts, rest: Agenda) -> Iterator[Agenda]:
        """Put some pods of a job into one domain and yield what is left to do."""
        self._budget.spend()
        branch = job.branch
        level = self._branches[branch].level
        before = (self._used.get(branch, frozenset()), branch in self._started, self._extra.get(level, 0))
        if not self._branches[branch].required:
            price = self._price(branch, domain)
            if price > self._extra[level]:
                return
            self._extra[level] -= price
            self._used[branch] = before[0] | {domain}
            self._started.add(branch)
        mark = len(self._ledger.pieces)
        region = Region(level, domain)
        own = set(self._outline.own[branch])
        if self._bind(tuple(pair for pair in amounts if pair[0] in own), region):
            inner = (
                Job(child, region, self._outline.within(child, amounts)) for child in self._outline.children[branch]
            )
            yield (*(child for child in inner if child.amounts), *rest)
        self._ledger.undo(mark)
        if not self._branches[branch].required:
            self._restore(branch, level, before)

    def _apart(self, job: Job, rest: Agenda) -> Iterator[Agenda]:
        """Spread a preferred job over several domains, and at last over nodes outside every domain."""
        branch, level = job.branch, self._branches[job.branch].level
        if self._extra[level] or self._used.get(branch):
            if job.among is None:
                yield from self._ideal(job, rest)
            order = self._spreading_order(job)
            for at, domain in enumerate(order):
                left = self._extra[level] - self._price(branch, domain)
                if left < 0:
                    continue
                if not self._reachable(job, order[at:], left + 1):
                    break
                later = order[at + 1 :]
                for part in self._parts(job, level, domain):
                    onward = job._replace(amounts=_less(job.amounts, part), among=later)
                    if self._reachable(onward, later, left):
                        yield from self._put(job, domain, part, (onward, *rest))
        yield from self._outside(job, rest)

    def _ideal(self, job: Job, rest: Agenda) -> Iterator[Agenda]:
        """Spread a simple group over the fewest, tightest domains at once: the answer when nobody competes."""
        branch = job.branch
        if self._outline.children[branch] or len(job.amounts) != 1 or self._used.get(branch):
            return
        (class_, pods), level = job.amounts[0], self._branches[branch].level
        low, high = self._range(job)
        room = self._ledger.room(level, next(iter(self._outline.shapes(job.amounts))), low, high)
        count = fewest(room, pods)
        if count is None or count - 1 > self._extra[level]:
            return
        self._budget.spend(count)
        before = (frozenset[int](), branch in self._started, self._extra[level])
        chosen = tightest(room, pods)
        self._extra[level] -= count - 1
        self._used[branch] = frozenset(low + domain for domain, _ in chosen)
        self._started.add(branch)
        mark = len(self._ledger.pieces)
        if all(self._ledger.commit(class_, Region(level, low + domain), part) for domain, part in chosen):
            yield rest
        self._ledger.undo(mark)
        self._restore(branch, level, before)

    def _outside(self, job: Job, rest: Agenda) -> Iterator[Agenda]:
        """Put a preferred job on nodes that are in no domain of its level; every pod there is a domain of its own."""
        branch, level = job.branch, self._branches[job.branch].level
        region = Region(job.region.level, job.region.domain, level)
        if job.region.lacking >= 0:
            region = job.region
        fits = all(
            self._packer.room(shape, region) >= pods for shape, pods in self._outline.shapes(job.amounts).items()
        )
        if not fits or not self._divisible(branch, job.amounts):
            return
        self._budget.spend()
        extra, started = dict(self._extra), set(self._started)
        mark = len(self._ledger.pieces)
        if self._charge_outside(branch, job.amounts) and self._bind(job.amounts, region):
            yield rest
        self._ledger.undo(mark)
        self._extra, self._started = extra, started

    # --- candidates ----------------------------------------------------------------------------------------------

    def _range(self, job: Job) -> tuple[int, int]:
        """Return the first domain of the branch's level inside the job's region, and the one after the last."""
        level = self._branches[job.branch].level
        tier = self._tiers[level]
        if job.region.lacking >= 0:
            return 0, 0
        if job.region.level < 0:
            return 0, len(tier)
        above = self._tiers[job.region.level]
        edges = (above.start[job.region.domain], above.end[job.region.domain])
        low, high = np.searchsorted(tier.start, edges)
        return int(low), int(high)

    def _candidates(self, job: Job) -> Iterator[int]:
        """Yield the domains that can hold all of a job by counting, tightest first, equal ones once."""
        branch = self._branches[job.branch]
        low, high = self._range(job)
        if low == high:
            return
        need = self._outline.shapes(job.amounts)
        total: Ints = np.zeros(high - low, dtype=np.int64)
        good = np.ones(high - low, dtype=bool)
        for shape, pods in need.items():
            room = self._ledger.room(branch.level, shape, low, high)
            good &= room >= pods
            total = total + room
        if branch.required and branch.anchored:
            good &= np.arange(low, high) == branch.anchored[0]
        if job.among is not None:
            good &= np.isin(np.arange(low, high), job.among)
        used = [
            domain - low for domain in self._used.get(job.branch, ()) if low <= domain < high and good[domain - low]
        ]
        if used:
            yield from (low + domain for domain in sorted(used, key=lambda domain: (total[domain], domain)))
            good[used] = False
        if not good.any():
            return
        first = int(np.where(good, total, np.iinfo(np.int64).max).argmin())
        yield low + first
        good[first] = False
        seen = {self._symmetry.domain(branch.level, low + first)}
        for domain in np.flatnonzero(good)[np.argsort(total[good], kind="stable")].tolist():
            if not self._ledger.touched(branch.level, low + domain):
                twin = self._symmetry.domain(branch.level, low + domain)
                if twin in seen:
                    continue
                seen.add(twin)
            yield low + domain

    def _spreading_order(self, job: Job) -> tuple[int, ...]:
        """Return the domains a job may be spread over: those in use first, then the roomiest."""
        level = self._branches[job.branch].level
        if job.among is not None:
            return job.among
        low, high = self._range(job)
        total: Ints = np.zeros(high - low, dtype=np.int64)
        for shape in self._outline.shapes(job.amounts):
            total = total + self._ledger.room(level, shape, low, high)
        used = self._used.get(job.branch, frozenset())
        order = [low + domain for domain in np.argsort(-total, kind="stable").tolist() if total[domain] > 0]
        return tuple(sorted(order, key=lambda domain: domain not in used))

    def _parts(self, job: Job, level: int, domain: int) -> Iterator[Amounts]:
        """Yield the ways to put a part of a job into one domain, largest first; never nothing, never all."""
        room = {
            shape: int(self._ledger.room(level, shape, domain, domain + 1)[0])
            for shape in self._outline.shapes(job.amounts)
        }
        atoms = self._outline.atoms(job.branch, job.amounts)
        stack: list[tuple[int, Amounts]] = [(0, ())]
        while stack:
            at, part = stack.pop()
            if at == len(atoms):
                merged = tuple(sorted(part))
                if merged and merged != job.amounts:
                    yield merged
                continue
            unit, most = atoms[at]
            for times in range(most + 1):
                grown = (*part, *((one, pods * times) for one, pods in unit)) if times else part
                if any(pods > room[shape] for shape, pods in self._outline.shapes(grown).items()):
                    break
                stack.append((at + 1, grown))

    def _reachable(self, job: Job, domains: Sequence[int], extra: int) -> bool:
        """Tell by counting whether a job could fit into `extra` of these domains, those in use coming free.

        A node outside every domain takes one pod at the price of a domain, so every domain counts at least that much.
        """
        level = self._branches[job.branch].level
        used = self._used.get(job.branch, frozenset())
        for shape, pods in self._outline.shapes(job.amounts).items():
            taken = self._ledger.room(level, shape, 0, len(self._tiers[level]))
            room = np.sort(taken[[domain for domain in domains if domain not in used]])[::-1][:extra]
            free = sum(int(taken[domain]) for domain in domains if domain in used)
            if free + int(np.maximum(room, 1).sum()) + extra - len(room) < pods:
                return False
        return True

    def _hopeless(self, agenda: Agenda) -> bool:
        """Tell by counting that the required groups still to be placed in one region cannot all find a domain."""
        waiting: dict[tuple[Region, int, int], list[int]] = {}
        for job in agenda:
            branch = self._branches[job.branch]
            need = self._outline.shapes(job.amounts)
            if job.branch != ROOT and branch.required and len(need) == 1:
                ((shape, pods),) = need.items()
                waiting.setdefault((job.region, branch.level, shape), []).append(pods)
        for (region, level, shape), sizes in waiting.items():
            if len(sizes) < 2:
                continue
            low, high = self._range(Job(self._example(level), region, ()))
            room = np.maximum(self._ledger.room(level, shape, low, high), 0)
            if sum(sizes) > room.sum():
                return True
            for size in set(sizes):
                if sum(other >= size for other in sizes) > (room // size).sum():
                    return True
        return False

    def _example(self, level: int) -> int:
        return next(number for number, branch in enumerate(self._branches) if branch.level == level)

    # --- bookkeeping ---------------------------------------------------------------------------------------------

    def _bind(self, amounts: Amounts, region: Region) -> bool:
        return all(self._ledger.commit(class_, region, pods) for class_, pods in amounts)

    def _price(self, branch: int, domain: int) -> int:
        """Return what one more domain costs a preferred branch: nothing for its first and for those it uses."""
        return int(branch in self._started and domain not in self._used.get(branch, frozenset()))

    def _charge_outside(self, branch: int, amounts: Amounts) -> bool:
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

    def _divisible(self, branch: int, amounts: Amounts) -> bool:
        """Tell whether no required branch is among these pods: such a branch needs a domain."""
        return all(
            not self._branches[child].required and self._divisible(child, inside)
            for child in self._outline.children[branch]
            if (inside := self._outline.within(child, amounts))
        )

    def _restore(self, branch: int, level: int, before: tuple[frozenset[int], bool, int]) -> None:
        used, started, extra = before
        self._extra[level] = extra
        self._used[branch] = used
        if not started:
            self._started.discard(branch)

    def _state(self, agenda: Agenda) -> object:
        """Return a key of all that decides how the search goes on from here."""
        pending = {branch for job in agenda for branch in self._outline.preferred[job.branch]}
        used = tuple(
            (branch, tuple(sorted(self._used[branch]))) for branch in sorted(pending) if self._used.get(branch)
        )
        started = tuple(sorted(pending & self._started))
        named = bool(used) or any(job.among is not None for job in agenda)
        return self._symmetry.state(agenda, named=named), tuple(sorted(self._extra.items())), used, started


def _less(amounts: Amounts, part: Amounts) -> Amounts:
    taken = dict(part)
    return tuple((one, pods - taken.get(one, 0)) for one, pods in amounts if pods > taken.get(one, 0))
