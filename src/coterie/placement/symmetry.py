"""What counts as the same state: equal domains are interchangeable, and so are groups that ask for the same."""

from __future__ import annotations

import numpy as np

from coterie.placement.capacity import Capacity
from coterie.placement.job import Agenda
from coterie.placement.ledger import Ledger
from coterie.placement.outline import Outline
from coterie.placement.packing import Region
from coterie.placement.problem import Problem


class Symmetry:
    """Signatures of domains, and the memory of states from which everything failed."""

    def __init__(self, problem: Problem, capacity: Capacity, outline: Outline, ledger: Ledger) -> None:
        self._problem = problem
        self._capacity = capacity
        self._outline = outline
        self._ledger = ledger
        self._fits = [capacity.fit(shape) for shape in problem.shapes]
        self._rows = np.unique(np.concatenate([fit.rows for fit in self._fits])) if self._fits else np.zeros(0, int)
        self._signatures: dict[tuple[int, int], int] = {}
        self._numbers: dict[object, int] = {}
        self._failed: set[object] = set()

    def remember(self, state: object) -> None:
        """Remember that nothing can be done from a state."""
        self._failed.add(state)

    def failed(self, state: object) -> bool:
        """Tell whether a state is known to lead nowhere."""
        return state in self._failed

    def domain(self, level: int, domain: int) -> int:
        """Return a number that equal domains share: same free nodes, arranged in the same finer domains."""
        found = self._signatures.get((level, domain))
        if found is None:
            content = self._content(level, domain)
            found = self._signatures[level, domain] = self._numbers.setdefault((level, content), len(self._numbers))
        return found

    def state(self, agenda: Agenda, *, named: bool) -> object:
        """Return a key for the jobs that wait and all that is committed.

        With `named`, domains keep their identity, because something that waits refers to them by it.
        """
        regions = {job.region for job in agenda}
        jobs = tuple(
            (self._outline.signature[job.branch], job.region)
            if job.amounts == self._outline.everything(job.branch)
            else (job.branch, job.region, job.amounts, job.among)
            for job in agenda
        )
        loose = tuple(sorted(piece for piece in self._ledger.pieces if piece.region.lacking >= 0))
        return jobs, self._usage(-1, 0, regions, named=named), loose

    def _usage(self, level: int, domain: int, regions: set[Region], *, named: bool) -> object:
        """Describe what is taken below a domain, with the domains in no particular order unless they are named."""
        below = level + 1
        children = sorted(
            {
                child
                for (at, _), taken in self._ledger.taken.items()
                if at == below
                for child in taken
                if level < 0 or self._capacity.domains.tiers[below].parent[child] == domain
            }
        )
        described = []
        for child in children:
            plain = not named and not any(self._inside(region, below, child) for region in regions)
            described.append(
                (
                    (0, self.domain(below, child)) if plain else (1, child),
                    tuple(self._ledger.taken.get((below, shape), {}).get(child, 0) for shape in range(len(self._fits))),
                    self._usage(below, child, regions, named=named),
                )
            )
        own = tuple(self._ledger.taken.get((level, shape), {}).get(domain, 0) for shape in range(len(self._fits)))
        return own, tuple(sorted(described))

    def _inside(self, region: Region, level: int, domain: int) -> bool:
        return (level, domain) in self._ledger.chain(region)

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

    def _nodes(self, where: np.ndarray) -> object:
        if len(self._fits) == 1:
            return int(self._fits[0].fits[where].sum())
        fits = np.stack([fit.fits[where] for fit in self._fits])
        useful = where[fits.any(axis=0)]
        columns = np.vstack(
            [self._capacity.free[np.ix_(self._rows, useful)], *(fit.fits[useful] for fit in self._fits)]
        )
        return tuple(sorted(map(tuple, columns.T.tolist())))
