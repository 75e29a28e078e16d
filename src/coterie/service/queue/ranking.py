"""The waiting gangs of a queue, kept sorted by rank, so that a cycle does not sort them again."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from coterie.config.configuration import Pool
from coterie.service.queue.holdings import Key
from coterie.service.queue.order import OrderInputs

_Rank = tuple[tuple[bool, int, float, int], int]  # the rank of a gang, and a number that grows with each that is added


class Ranking:
    """Keys of waiting gangs in the order of their ranks; of equal ones, the first that was added comes first."""

    def __init__(self) -> None:
        self._added = 0
        self._ranks: dict[Key, _Rank] = {}
        self._sorted: list[tuple[_Rank, Key, OrderInputs]] = []
        self._pools: dict[str, dict[Key, Pool]] = {}

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The pools of waiting gangs by name; where gangs have several versions of one, the latest."""
        return {name: next(reversed(mine.values())) for name, mine in self._pools.items()}

    def add(self, key: Key, inputs: OrderInputs, pool: Pool) -> None:
        """Add a gang that is not there yet."""
        self._added += 1
        rank = self._ranks[key] = inputs.rank, self._added
        insort(self._sorted, (rank, key, inputs), key=_rank)
        self._pools.setdefault(inputs.pool, {})[key] = pool

    def remove(self, key: Key) -> None:
        """Remove a gang."""
        rank = self._ranks.pop(key)
        position = bisect_left(self._sorted, rank, key=_rank)
        _, _, inputs = self._sorted.pop(position)
        mine = self._pools[inputs.pool]
        del mine[key]
        if not mine:
            del self._pools[inputs.pool]

    def ordered(self) -> list[tuple[Key, OrderInputs]]:
        """Return all gangs in order; later changes do not affect the list."""
        return [(key, inputs) for _, key, inputs in self._sorted]


def _rank(item: tuple[_Rank, Key, OrderInputs]) -> _Rank:
    return item[0]
