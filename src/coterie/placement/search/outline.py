"""The part of a problem that one search covers: its binding branches, and the pods below each.

A preferred branch whose level has no limit yet is removed: the pods below it belong to the branch above. So are implied
branches, unless they are requested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

from coterie.placement.problem import ROOT, Problem

Amounts = tuple[tuple[int, int], ...]  # (class, pods) pairs, sorted, no zeros


class Outline:
    """The kept branches with their kept children, own classes and demands; branches without pods are left out."""

    def __init__(self, problem: Problem, limits: Collection[int], *, implied: bool) -> None:
        self.problem = problem
        kept = [
            number == ROOT or branch.required or (implied if branch.implied else branch.level in limits)
            for number, branch in enumerate(problem.branches)
        ]
        stated = [keep and not branch.implied for keep, branch in zip(kept, problem.branches, strict=True)]
        self.home: list[int] = []
        for number, branch in enumerate(problem.branches):
            self.home.append(number if kept[number] else self.home[branch.parent])
        count = len(problem.branches)
        self.own: list[list[int]] = [[] for _ in range(count)]
        self.below: list[list[int]] = [[] for _ in range(count)]
        for number, one in enumerate(problem.classes):
            self.own[self.home[one.branch]].append(number)
        self.children: list[list[int]] = [[] for _ in range(count)]
        for number in range(count - 1, -1, -1):
            self.below[number].extend(self.own[number])
            if number != ROOT and kept[number] and self.below[number]:
                above = self.home[problem.branches[number].parent]
                self.children[above].append(number)
                self.below[above].extend(self.below[number])
        self._within: dict[tuple[int, Amounts], Amounts] = {}
        self._everything = [
            tuple((one, problem.classes[one].count) for one in sorted(classes)) for classes in self.below
        ]
        self.need = [self._need(classes) for classes in self.below]
        for children in self.children:
            # The largest first: the hardest to place is placed while there is most room.
            children.sort(key=lambda number: (-sum(self.need[number].values()), number))
        self.signature: list[int] = [0] * count
        self._signatures()
        self.levels = sorted(
            {problem.branches[number].level for number in range(1, count) if self.below[number] and stated[number]}
        )
        # Per branch, how many of its ancestors have its level.
        self.depth = [0] * count
        for number in range(1, count):
            above = problem.branches[number].parent
            while above != ROOT and problem.branches[above].level != problem.branches[number].level:
                above = problem.branches[above].parent
            self.depth[number] = self.depth[above] + 1 if above != ROOT else 0
        # Per branch, the (level, domain) pairs in which its own tasks, or those of branches below it, already run.
        self.homes: list[frozenset[tuple[int, int]]] = [frozenset()] * count
        for number in range(count - 1, ROOT, -1) if problem.anchors else ():
            own = {(problem.branches[number].level, one) for one in problem.branches[number].homes}
            inner = [self.homes[child] for child in self.children[number] if self.homes[child]]
            if own or inner:
                self.homes[number] = frozenset(own.union(*inner))
        # Per branch, the preferred branches at or below it.
        self.preferred: list[list[int]] = [[] for _ in range(count)]
        for number in range(count - 1, ROOT, -1):
            if stated[number] and not problem.branches[number].required:
                self.preferred[number].append(number)
            if kept[number]:
                self.preferred[self.home[problem.branches[number].parent]].extend(self.preferred[number])

    @staticmethod
    def of(problem: Problem, levels: Iterable[int], *, implied: bool = False) -> Outline:
        """Return the cached outline of a problem with limits on some levels, with or without implied branches."""
        limits = frozenset(levels)
        key = (limits, implied)
        found = problem.outlines.get(key)
        if found is None:
            found = problem.outlines[key] = Outline(problem, limits, implied=implied)
        return cast("Outline", found)

    def everything(self, branch: int) -> Amounts:
        """Return all pods below a branch."""
        return self._everything[branch]

    def within(self, branch: int, amounts: Amounts) -> Amounts:
        """Return the part of the amounts that belongs below a branch."""
        key = (branch, amounts)
        if key not in self._within:
            mine = set(self.below[branch])
            self._within[key] = tuple(pair for pair in amounts if pair[0] in mine)
        return self._within[key]

    def shapes(self, amounts: Amounts) -> dict[int, int]:
        """Return amounts summed up by shape."""
        totals: dict[int, int] = {}
        for one, pods in amounts:
            shape = self.problem.classes[one].shape
            totals[shape] = totals.get(shape, 0) + pods
        return totals

    def own_of(self, branch: int, amounts: Amounts) -> Amounts:
        """Return the part of the amounts that is directly on a branch."""
        mine = set(self.own[branch])
        return tuple(pair for pair in amounts if pair[0] in mine)

    def separable(self, branch: int, amounts: Amounts) -> Amounts:
        """Return the part of the amounts that no required branch below this one keeps together."""
        free = list(self.own_of(branch, amounts))
        for child in self.children[branch]:
            if not self.problem.branches[child].required:
                free.extend(self.separable(child, self.within(child, amounts)))
        return tuple(sorted(free))

    def _need(self, classes: list[int]) -> dict[int, int]:
        totals: dict[int, int] = {}
        for number in classes:
            one = self.problem.classes[number]
            totals[one.shape] = totals.get(one.shape, 0) + one.count
        return totals

    def _signatures(self) -> None:
        """Assign equal signatures to branches with equal demands, so that they are interchangeable in the search."""
        known: dict[object, int] = {}
        for number in range(len(self.problem.branches) - 1, -1, -1):
            branch = self.problem.branches[number]
            own = sorted((self.problem.classes[one].shape, self.problem.classes[one].count) for one in self.own[number])
            children = sorted(self.signature[child] for child in self.children[number])
            anchored = (number,) if branch.anchored or branch.near else ()
            key = (branch.level, branch.required, tuple(own), tuple(children), anchored)
            self.signature[number] = known.setdefault(key, len(known))
