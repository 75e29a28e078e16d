"""The search for nodes to reserve for gangs that have been overtaken for too long.

A search that the first budget leaves undecided is not a refusal here either: it is continued with the whole budget, a
part in each cycle and one search at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.service.queue.cycle import LENT, QUEUE_BUDGET, QueueEntry
from coterie.service.queue.holdings import BackendHoldings, Key
from coterie.service.queue.open_searches import LongSearch


@dataclass(frozen=True, slots=True)
class _ReservationFailure:
    """No nodes for a gang beside those `taken` for others; `final` if that is proved, or the whole budget was spent."""

    taken: frozenset[str]
    final: bool


@dataclass(frozen=True, slots=True)
class _OpenReservation:
    """A search with the whole budget that is in progress, and the nodes taken for others."""

    key: Key
    taken: frozenset[str]
    question: LongSearch


class Reservations:
    """The nodes on which gangs would fit without Coterie's own tasks."""

    def __init__(self, world: BackendHoldings) -> None:
        self._world = world
        self._failed: dict[Key, _ReservationFailure] = {}
        self._open: _OpenReservation | None = None
        self._advanced = False

    def find(self, entry: QueueEntry, anchors: Mapping[str, str], taken: frozenset[str]) -> frozenset[str]:
        """Return nodes for a gang beside those taken for others; none where there are none, or none are known yet."""
        known = self._failed.get(entry.key)
        if known is None or known.taken != taken:
            vacant = self._vacant(entry, taken)
            answer: Found | NoPlacement | None = place(entry.gang, vacant, anchors=anchors, budget=QUEUE_BUDGET)
            final = isinstance(answer, NoPlacement) and answer.proved
        elif known.final:
            return frozenset()
        else:
            answer, final = self._ask_at_length(entry, anchors, taken), True
        if isinstance(answer, Found):
            return frozenset(answer.nodes.values())
        if answer is not None:
            self._failed[entry.key] = _ReservationFailure(taken, final)
        return frozenset()

    def forget(self, key: Key) -> None:
        """Forget a gang that no longer waits."""
        self._failed.pop(key, None)
        if self._open and self._open.key == key:
            self._open = None

    def end_cycle(self) -> None:
        """Give up a search that was not requested in this cycle, so that it does not block others."""
        if not self._advanced:
            self._open = None
        self._advanced = False

    def _ask_at_length(
        self, entry: QueueEntry, anchors: Mapping[str, str], taken: frozenset[str]
    ) -> Found | NoPlacement | None:
        """Continue the search for a gang; None while it, or that for another gang, is undecided."""
        if self._advanced or (self._open and self._open.key != entry.key):
            return None
        if self._open is None or self._open.taken != taken:
            self._open = _OpenReservation(entry.key, taken, LongSearch(entry.gang, self._vacant(entry, taken), anchors))
        self._advanced = True
        answer = self._open.question.go_on(LENT)
        if answer is not None:
            self._open = None
        return answer

    def _vacant(self, entry: QueueEntry, taken: frozenset[str]) -> Capacity:
        """Return the capacity without Coterie's holdings, except on the nodes taken for others."""
        vacant = self._world.vacant(entry.pool)
        vacant.usable[[vacant.domains.position[node] for node in sorted(taken)]] = False
        return vacant
