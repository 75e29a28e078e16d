"""The engine's entry point: place a gang on a capacity, as well as its preferences allow, or prove it infeasible.

The objective is lexicographic: level by level from the finest to the coarsest, the number of extra domains that
preferred groups use. Each level is decided by testing, from a lower bound upwards, whether that many are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coterie.gang.tree import Gang
from coterie.placement.budget import CHOICE, DEFAULT_BUDGET, Budget, Exhausted
from coterie.placement.capacity import Capacity
from coterie.placement.cost import extra_domains
from coterie.placement.packing.arrangement import arrange
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import Item, Region
from coterie.placement.problem import Problem, compile_gang
from coterie.placement.search.domains import Search
from coterie.placement.search.ledger import Piece
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class Found:
    """A placement of every task but those left out, which were optional.

    `extra` is the cost of preferences, per level with a preferred group.
    """

    nodes: Mapping[str, str]
    positions: Mapping[str, int]
    extra: Mapping[str, int]
    optimal: bool
    steps: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """No placement: proved, or not found before the budget ended."""

    proved: bool
    steps: int


def place(
    gang: Gang, capacity: Capacity, *, anchors: Mapping[str, str] | None = None, budget: int | Budget = DEFAULT_BUDGET
) -> Found | NoPlacement:
    """Place all tasks of a gang or none, optional ones too; tasks in `anchors` already run on their node and stay."""
    domains = capacity.domains
    fixed = {task: domains.position[node] for task, node in (anchors or {}).items()}
    problem = compile_gang(gang, domains, fixed) if fixed else capacity.compiled(gang)
    steps = Budget(budget) if isinstance(budget, int) else budget
    try:
        solution, optimal = _Question(problem, capacity, steps).best()
    except Exhausted:
        return NoPlacement(proved=False, steps=steps.spent)
    if solution is None:
        return NoPlacement(proved=True, steps=steps.spent)
    positions = {**fixed, **solution} if fixed else solution
    where = map(positions.__getitem__, problem.names)
    names = dict(zip(problem.names, map(domains.names.__getitem__, where), strict=True))
    return Found(names, positions, _costs(problem, domains, solution), optimal, steps.spent)


Solution = dict[str, int]

# How often each branch may be moved for a tie-break.
_COMPACT = 8


class _Question:
    """One gang on one capacity, searched with different limits."""

    def __init__(self, problem: Problem, capacity: Capacity, budget: Budget) -> None:
        self._problem = problem
        self._capacity = capacity
        self._budget = budget
        self._packer = Packer(capacity, problem.shapes, budget)

    def best(self) -> tuple[Solution | None, bool]:
        """Return the best solution and whether it is proved optimal; raise `Exhausted` when none was found in time."""
        levels = self._problem.preferred_levels()
        least: dict[int, int] = {}
        search: Search | None = None
        if levels:
            search = self._search(dict.fromkeys(levels, 0))
            least = search.hold_to_least()
        if (compact := self._compact(least)) is not None:
            return compact, True
        if search is not None and (ideal := self._within(search)) is not None:
            return ideal, True
        best = self._ask({})
        if best is None or not levels:
            return best, True
        best, proved = self._improve(best, levels, least)
        found = {level: self._cost(best, level) for level in levels}
        return (self._compact(found) if found != least else None) or best, proved

    def _compact(self, limits: Mapping[int, int]) -> Solution | None:
        """Return a solution within limits that also uses few domains of unconstrained levels.

        That is a tie-break with its own steps, and its failure proves nothing.
        """
        if not self._problem.implies:
            return None
        search = Search(self._problem, self._capacity, limits, self._packer, self._budget, implied=True)
        try:
            with self._budget.apart(_COMPACT * CHOICE * len(self._problem.branches)):
                pieces = search.run()
        except Exhausted:
            return None
        return None if pieces is None else self._deal(pieces)

    def _improve(self, best: Solution, levels: Sequence[int], least: Mapping[int, int]) -> tuple[Solution, bool]:
        """Decide one level after the other, finest first, by bisecting the range of its cost.

        A search that takes too long counts as a failure, and then nothing is proved any more; the search continues,
        because a better solution is worth having without a proof.
        """
        settled: dict[int, int] = {}
        proved = True
        for number, level in enumerate(levels):
            best, sure = self._settle(best, level, settled, least[level])
            proved = proved and sure
            settled[level] = self._cost(best, level)
            # With this level decided, all coarser ones may be optimal at once.
            coarser = {other: least[other] for other in levels[number + 1 :]}
            if coarser and (ideal := self._try({**settled, **coarser})) is not None:
                return ideal, proved
        return best, proved

    def _settle(self, best: Solution, level: int, settled: Mapping[int, int], low: int) -> tuple[Solution, bool]:
        """Return a solution with the least cost found at a level, and whether less is proved impossible."""
        least, high, sure = low, self._cost(best, level), True
        while low < high:
            limit = (low + high) // 2
            try:
                with self._budget.at_most(self._budget.steps // 4):
                    better = self._ask({**settled, level: limit})
            except Exhausted:
                better, sure = None, False
            if better is None:
                low = limit + 1
            else:
                best, high = better, self._cost(better, level)
        # The rest of the budget goes to the two searches that may decide it: the tightest limit, which is often
        # answered soonest, and one less than the best.
        for limit in () if sure else (least, high - 1):
            if limit >= high:
                break
            try:
                with self._budget.at_most(self._budget.left // 2):
                    better = self._ask({**settled, level: limit})
            except Exhausted:
                continue
            if better is not None:
                best, high = better, self._cost(better, level)
            elif limit == high - 1:
                sure = True
        return best, sure or high == least

    def _cost(self, solution: Solution, level: int) -> int:
        domains = self._capacity.domains
        return _costs(self._problem, domains, solution)[domains.topology.names[level]]

    def _try(self, limits: Mapping[int, int]) -> Solution | None:
        """Search with a part of the budget: a failure is no proof, and must leave steps for one."""
        return self._within(self._search(limits))

    def _within(self, search: Search) -> Solution | None:
        try:
            with self._budget.at_most(self._budget.steps // 4):
                pieces = search.run()
        except Exhausted:
            return None
        return None if pieces is None else self._deal(pieces)

    def _ask(self, limits: Mapping[int, int]) -> Solution | None:
        pieces = self._search(limits).run()
        return None if pieces is None else self._deal(pieces)

    def _search(self, limits: Mapping[int, int]) -> Search:
        return Search(self._problem, self._capacity, limits, self._packer, self._budget)

    def _deal(self, pieces: list[Piece]) -> Solution:
        """Assign every task a node: the packer places the pieces on nodes, and names are assigned in order."""
        totals: dict[tuple[int, Region], int] = {}
        for piece in pieces:
            key = (self._problem.classes[piece.class_].shape, piece.region)
            totals[key] = totals.get(key, 0) + piece.pods
        items = tuple(sorted(Item(shape, region, count) for (shape, region), count in totals.items()))
        packing = arrange(self._packer, items, tuple(self._problem.anchors.values())) if items else ()
        if packing is None:
            raise AssertionError("pieces that passed the feasibility test do not pack")
        slots = {
            (item.shape, item.region): [position for position, pods in sorted(pairs) for _ in range(pods)]
            for item, pairs in zip(items, packing, strict=True)
        }
        nodes: dict[int, list[int]] = {}
        for piece in pieces:
            pool = slots[self._problem.classes[piece.class_].shape, piece.region]
            nodes.setdefault(piece.class_, []).extend(pool[: piece.pods])
            del pool[: piece.pods]
        solution: Solution = {}
        for number, positions in nodes.items():
            solution.update(zip(self._problem.classes[number].names, sorted(positions), strict=True))
        return solution


def _costs(problem: Problem, domains: Domains, solution: Solution) -> dict[str, int]:
    groups = (branch.group for branch in problem.branches[1:] if branch.group is not None)
    return extra_domains(groups, {**problem.anchors, **solution}, domains)
