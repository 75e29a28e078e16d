"""The limits of extra domains per level, and the charges of preferred branches against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coterie.placement.problem import Problem
from coterie.placement.search.outline import Amounts, Outline


class Limits:
    """The extra domains that are left per level.

    `started` are the preferred branches that have a pod somewhere before their job is reached: their first domain is
    paid for already.
    """

    def __init__(self, problem: Problem, outline: Outline, limits: Mapping[int, int]) -> None:
        self._branches = problem.branches
        self._outline = outline
        self.extra = dict(limits)
        self.started: set[int] = set()

    @property
    def exceeded(self) -> bool:
        """Whether more than a limit is charged."""
        return min(self.extra.values(), default=0) < 0

    def first_free(self, branch: int) -> bool:
        """Return whether the next domain of a preferred branch is its first, which costs nothing."""
        return branch not in self.started

    def affordable(self, branch: int) -> int:
        """Return how many more domains a preferred branch may use."""
        return self.extra[self._branches[branch].level] + self.first_free(branch)

    def price(self, branch: int, domains: Iterable[int]) -> int:
        """Return how many extra domains a preferred branch pays for when it uses these."""
        return len(set(domains) - self._branches[branch].homes) - self.first_free(branch)

    def charge_anchors(self) -> bool:
        """Charge the running tasks; return False when they break a required branch.

        A preferred branch with running tasks has started: its first domain is paid for, and only the domains in which
        it runs are free.
        """
        for number, branch in enumerate(self._branches):
            if branch.required:
                if len(set(branch.anchored)) > 1 or -1 in branch.anchored:
                    return False
            elif branch.anchored and branch.level in self.extra:
                self.started.add(number)
                self.extra[branch.level] -= len(branch.homes) + branch.anchored.count(-1) - 1
        return True

    def charge_outside(self, branch: int, amounts: Amounts) -> bool:
        """Charge a preferred branch, and those below it, one domain for each of these pods."""
        if not self._branches[branch].implied:
            level = self._branches[branch].level
            self.extra[level] -= sum(pods for _, pods in amounts) - self.first_free(branch)
            self.started.add(branch)
            if self.extra[level] < 0:
                return False
        return all(
            self.charge_outside(child, inside)
            for child in self._outline.children[branch]
            if (inside := self._outline.within(child, amounts))
        )
