"""The undecided searches of a queue: continued with the whole budget, one at a time and a part in each cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement
from coterie.service.queue.cycle import LENT, CyclePlacements, PlacementAttempt, QueuedGang, QueueEntry
from coterie.service.queue.failures import REMEMBERED, PlacementFailure, PlacementFailures
from coterie.service.queue.holdings import BackendHoldings, Key
from coterie.service.queue.limits import QueueLimits
from coterie.service.queue.open_searches import LongSearch

Reserved = Mapping[Key, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _OpenSearch:
    """A search with the whole budget that is in progress, and its conditions."""

    key: Key
    kind: int
    freed: int
    closed: frozenset[str]
    question: LongSearch


class UndecidedSearches:
    """The searches that the budget of a cycle did not decide."""

    def __init__(self, world: BackendHoldings, failures: PlacementFailures, limits: QueueLimits) -> None:
        self._world, self._failures, self._limits = world, failures, limits
        self._open: _OpenSearch | None = None
        self._asked: dict[int, int] = {}  # kinds searched in full, by when: the last has the highest number

    def inherit(self, other: UndecidedSearches) -> None:
        """Continue the searches of another queue on the same nodes."""
        self._open, self._asked = other._open, other._asked

    def go_on(
        self,
        waiting: Mapping[Key, QueuedGang],
        tried: Sequence[QueuedGang],
        placements: CyclePlacements,
        kept: Reserved,
    ) -> QueuedGang | None:
        """Continue one search, and hold the gang's placement if the result is still free; return the placed gang."""
        if self._open:
            gang = waiting.get(self._open.key)
            alike = {one.entry.key for one in tried if one.kind == self._open.kind}
            # Of equal gangs only the first is tried: where that is another one now, this search would block all others.
            if gang is None or gang.kind != self._open.kind or (alike and self._open.key not in alike):
                self._open = None
        if self._open is None:
            self._open = self._next(tried, kept)
        found = next((one for one in tried if self._open and one.entry.key == self._open.key), None)
        if self._open is None or found is None:
            return None
        answer = self._open.question.go_on(LENT)
        if answer is None:
            return None
        asked, self._open = self._open, None
        if isinstance(answer, NoPlacement):
            self._failures.add(asked.kind, PlacementFailure(asked.freed, asked.closed, answer, asked=True))
            return None
        entry, closed = found.entry, _kept_for_others(found.entry, kept)
        with self._world.closed(closed):
            fits = not self._limits.blocks(found) and _still_fits(answer, entry, self._world.capacity(entry.pool))
        if fits:
            placements.hold(PlacementAttempt(entry, self._world.present(entry.anchors), closed), answer)
        return found if fits else None

    def _next(self, tried: Sequence[QueuedGang], kept: Reserved) -> _OpenSearch | None:
        """Start the undecided search that was not continued for the longest time."""
        # Gangs of one kind are alike, but for the nodes that are reserved for one of them.
        alike: dict[tuple[int, Key | None], QueuedGang] = {}
        for one in tried:
            alike.setdefault((one.kind, one.entry.key if one.entry.key in kept else None), one)
        for gang in sorted(alike.values(), key=lambda one: self._asked.get(one.kind, 0)):
            entry, closed = gang.entry, _kept_for_others(gang.entry, kept)
            known = self._failures.find(gang.kind, closed)
            if known is None or known.answer.proved or known.asked or self._limits.blocks(gang):
                continue
            if len(self._asked) > REMEMBERED:
                self._asked.clear()
            self._asked[gang.kind] = 1 + max(self._asked.values(), default=0)
            with self._world.closed(closed):
                capacity = self._world.capacity(entry.pool).copy()
            question = LongSearch(entry.gang, capacity, self._world.present(entry.anchors))
            return _OpenSearch(entry.key, gang.kind, self._world.freed, closed, question)
        return None


def _kept_for_others(entry: QueueEntry, kept: Reserved) -> frozenset[str]:
    """Return the nodes that are reserved for other gangs."""
    return frozenset[str]().union(*(nodes for key, nodes in kept.items() if key != entry.key))


def _still_fits(found: Found, entry: QueueEntry, capacity: Capacity) -> bool:
    """Return whether the new tasks of a placement still fit, since the free capacity may have changed."""
    left = capacity.copy()
    for task in entry.gang.all_tasks():
        if task.name in entry.anchors:
            continue
        position = left.domains.position[found.nodes[task.name]]
        if left.fit(task.shape).fits[position] < 1:
            return False
        left.take(task.shape, [position], [1])
    return True
