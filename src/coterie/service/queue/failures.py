"""Searches without a placement, remembered so that none is repeated in vain."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.placement.engine import NoPlacement
from coterie.service.queue.holdings import BackendHoldings

# How many are remembered.
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class PlacementFailure:
    """No placement for a kind of gang: the freed capacity and closed nodes at that time, and the engine's answer.

    It holds as long as no more capacity is freed and at least those nodes are closed: less capacity never makes a
    placement possible. `asked` means that the whole budget was spent on it.
    """

    freed: int
    closed: frozenset[str]
    answer: NoPlacement
    asked: bool = False


class PlacementFailures:
    """The failures of each kind of gang on the nodes of one backend: gangs of one kind fit or fail alike."""

    def __init__(self, world: BackendHoldings) -> None:
        self._world = world
        self._known: dict[int, PlacementFailure] = {}

    def find(self, kind: int, closed: frozenset[str] | None = None) -> PlacementFailure | None:
        """Return why a kind of gang does not fit, if that still holds with these nodes closed, or with any."""
        known = self._known.get(kind)
        if known is None or known.freed != self._world.freed:
            return None
        return known if closed is None or known.closed <= closed else None

    def add(self, kind: int, failure: PlacementFailure) -> None:
        """Remember a failure."""
        if len(self._known) > REMEMBERED:
            self._known.clear()
        self._known[kind] = failure

    def clear(self) -> None:
        """Forget all, since reserved nodes are free again."""
        self._known.clear()
