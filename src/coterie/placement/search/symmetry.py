"""Equality of states: equal domains are interchangeable, and so are groups with equal demands.

Everything here rests on one invariant. The exchange of two equal domains, with all pods bound in them, turns a solution
of a state into a solution of the same state at the same cost, provided that nothing distinguishes the two domains. Four
things can:

- the pods already bound in them: each key includes the usage;
- the domains around them, where those differ: a key includes their ancestors, up to the first common one;
- a waiting job that has to stay in one of them, or pods bound to several domains, of which it is one;
- a waiting branch, at any depth below a waiting job, with tasks that already run in one of them: a required branch can
  go nowhere else, and to a preferred one that domain is free, whereas any other costs one.

Domains of the last two kinds are *named*, and so is every domain around them. A named domain is equal to no other. No
domain inside an unnamed one is named, so unnamed equal domains can be exchanged as a whole.
"""

from __future__ import annotations

import numpy as np

from coterie.placement.capacity import Capacity, Positions
from coterie.placement.packing.node_table import Region
from coterie.placement.problem import ROOT, Problem
from coterie.placement.search.job import Agenda
from coterie.placement.search.ledger import Ledger, simple
from coterie.placement.search.outline import Outline

Usage = tuple[tuple[int, ...], tuple[object, ...]]
Named = set[tuple[int, int]]  # (level, domain) pairs


class Symmetry:
    """Signatures of domains, and the memory of states from which everything failed."""

    def __init__(self, problem: Problem, capacity: Capacity, outline: Outline, ledger: Ledger, rows: Positions) -> None:
        self._problem = problem
        self._capacity = capacity
        self._outline = outline
        self._ledger = ledger
        self._fits = [capacity.fit(shape) for shape in problem.shapes]
        self._rows = rows
        self._signatures: dict[tuple[int, int], int] = {}
        self._numbers: dict[object, int] = {}
        self._failed: set[object] = set()

    def remember(self, state: object) -> None:
        """Remember that no solution exists from a state.

        The failure holds for every state with the same key: a sequence of exchanges of equal domains, and of branches
        with equal signatures, turns the one into the other. A branch with running tasks shares its signature with none.
        """
        self._failed.add(state)

    def failed(self, state: object) -> bool:
        """Return whether a state is known to have no solution."""
        return state in self._failed

    def domain(self, level: int, domain: int) -> int:
        """Return a number that equal domains share: the same free nodes, arranged in the same finer domains."""
        found = self._signatures.get((level, domain))
        if found is None:
            content = self._content(level, domain)
            found = self._signatures[level, domain] = self._numbers.setdefault((level, content), len(self._numbers))
        return found

    def twin(self, level: int, domain: int, named: Named) -> object:
        """Return a key that two domains share when it makes no difference which of them is used next.

        They must be equal and equally used, and so must be their ancestors at levels that matter, up to the first
        common one; a domain that is named, or that overlapping pieces may use, is equal to no other.
        """
        key: list[object] = []
        for at in reversed([-1, *(other for other in self._outline.levels if other <= level)]):
            here = self._above(level, domain, at)
            if at < 0 or (at, here) in named or self._ledger.overlapped(at, here):
                key.append((at, here))
                break
            key.append((self.domain(at, here), self._usage(at, here, named)))
        return tuple(key)

    def _above(self, level: int, domain: int, wanted: int) -> int:
        """Return the domain of a coarser level that holds a domain."""
        while level > wanted:
            domain = int(self._capacity.domains.tiers[level].parent[domain])
            level -= 1
        return domain

    def named(self, agenda: Agenda) -> Named:
        """Return the domains that are not interchangeable for the waiting jobs, and their ancestors.

        Those are the regions of the jobs, and the domains in which tasks of any branch at or below a job already run.
        """
        regions = {job.region for job in agenda}
        domains = {(region.level, one) for region in regions for one in region.domains}
        # Tasks at the root are unconstrained, independent of running tasks elsewhere.
        homes = (self._outline.homes[job.branch] for job in agenda if job.branch != ROOT)
        return self._with_above(domains.union(*homes))

    def around(self, level: int, domain: int) -> Named:
        """Return the ancestors of a domain at levels that matter: once it is used, they are named."""
        return {(at, self._above(level, domain, at)) for at in self._outline.levels if at < level}

    def state(self, agenda: Agenda) -> object:
        """Return a key for the waiting jobs and all commitments.

        Domains that a waiting job or an overlapping piece refers to keep their identity; others are represented by
        their signatures.
        """
        scattered = [piece for piece in self._ledger.pieces if not simple(piece.region)]
        named = self.named(agenda) | self._with_above(
            {(piece.region.level, one) for piece in scattered for one in piece.region.domains}
        )
        jobs = tuple(
            sorted(
                (self._outline.signature[job.branch], job.region, ())
                if job.amounts == self._outline.everything(job.branch)
                else (job.branch, job.region, job.amounts)
                for job in agenda
            )
        )
        return jobs, self._usage(-1, 0, named), self._ledger.items(scattered)

    def _with_above(self, named: Named) -> Named:
        return {link for level, domain in named for link in self._ledger.chain(Region(level, (domain,)))}

    def _usage(self, level: int, domain: int, named: Named) -> Usage:
        """Return a description of the usage of a domain and, at the levels that matter, below it."""
        own = tuple(self._ledger.taken.get((level, shape), {}).get(domain, 0) for shape in range(len(self._fits)))
        below = next((other for other in self._outline.levels if other > level), None)
        if below is None or not any(own):
            return own, ()
        children = {
            child
            for shape in range(len(self._fits))
            for child in self._ledger.taken.get((below, shape), ())
            if self._above(below, child, level) == domain
        }
        described = [
            (
                (1, child) if (below, child) in named else (0, self.domain(below, child)),
                self._usage(below, child, named),
            )
            for child in children
        ]
        return own, tuple(sorted(described))

    def _content(self, level: int, domain: int) -> object:
        tier = self._capacity.domains.tiers[level]
        start, end = int(tier.start[domain]), int(tier.end[domain])
        finer = [other for other in self._outline.levels if other > level]
        if not finer:
            return self._nodes(np.arange(start, end))
        inner = self._capacity.domains.tiers[finer[0]]
        low, high = np.searchsorted(inner.start, (start, end))
        outside = start + np.flatnonzero(inner.of[start:end] < 0)
        return tuple(sorted(self.domain(finer[0], child) for child in range(low, high))), self._nodes(outside)

    def _nodes(self, where: Positions) -> object:
        if len(self._fits) == 1:
            return int(self._fits[0].fits[where].sum())
        fits = np.stack([fit.fits[where] for fit in self._fits])
        useful = where[fits.any(axis=0)]
        columns = np.vstack(
            [self._capacity.free[np.ix_(self._rows, useful)], *(fit.fits[useful] for fit in self._fits)]
        )
        return tuple(sorted(map(tuple, columns.T.tolist())))
