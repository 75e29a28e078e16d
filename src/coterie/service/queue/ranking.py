"""The waiting gangs of a queue, kept sorted by rank, so that a cycle does not sort them again.

Neighbours that are alike form a run. A workflow of thousands of equal groups is one, and once the first of them does
not fit, a cycle need not look at the others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from coterie.config.configuration import Pool
from coterie.service.queue.cycle import QueuedGang
from coterie.service.queue.holdings import Key

_Rank = tuple[bool, int, float, int]


@dataclass(eq=False, slots=True)
class GangRun:
    """Gangs with the same rank, pool and kind, one after the other in the order of the queue: they fit or fail alike.

    `number` orders the runs of one rank. `overtaken` has the time since which others overtake a gang: of the first
    gangs alone, and never earlier than that of the gang before. `unreported` are the gangs added since the reason why
    they wait, `reported`, was reported.
    """

    pool: Pool
    kind: int
    rank: _Rank
    number: int
    gangs: OrderedDict[Key, QueuedGang] = field(default_factory=OrderedDict)
    overtaken: OrderedDict[Key, float] = field(default_factory=OrderedDict)
    reported: tuple[str, str] | None = None
    unreported: dict[Key, QueuedGang] = field(default_factory=dict)

    @property
    def first(self) -> QueuedGang:
        """The first gang."""
        return next(iter(self.gangs.values()))

    def at(self, position: int) -> QueuedGang:
        """Return a gang by its position."""
        return next(islice(self.gangs.values(), position, None))

    def after(self, key: Key) -> Key | None:
        """Return the gang that follows one of the run."""
        keys = iter(self.gangs)
        return next(keys, None) if key in keys else None  # looking for the key moves the iterator behind it

    def overtake(self, count: int, now: float) -> None:
        """Record that the first gangs have been overtaken."""
        if count > (known := len(self.overtaken)):
            self.overtaken.update((key, now) for key in islice(self.gangs, known, count))

    def overtaken_since(self, position: int) -> float | None:
        """Return since when others overtake the gang at a position."""
        return next(islice(self.overtaken.values(), position, None), None)

    def continues_with(self, gang: QueuedGang, overtaken: float | None) -> bool:
        """Return whether a gang that comes next in the order, and is overtaken since some time, belongs to this run."""
        if (self.rank, self.kind) != (gang.order.rank, gang.kind) or self.pool != gang.entry.pool:
            return False
        if overtaken is None:
            return True
        return len(self.overtaken) == len(self.gangs) and next(reversed(self.overtaken.values())) <= overtaken


class Ranking:
    """Runs of waiting gangs in the order of their ranks; of equal gangs, the first that was added comes first."""

    def __init__(self) -> None:
        self._added = 0
        self._run_of: dict[Key, GangRun] = {}
        self._sorted: list[GangRun] = []
        self._pools: dict[str, OrderedDict[Key, Pool]] = {}

    def __iter__(self) -> Iterator[GangRun]:
        return iter(self._sorted)

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The pools of waiting gangs by name; where gangs have several versions of one, the latest."""
        return {name: next(reversed(mine.values())) for name, mine in self._pools.items()}

    def run_of(self, key: Key) -> GangRun | None:
        """Return the run of a gang that is waiting."""
        return self._run_of.get(key)

    def overtaken_since(self, key: Key) -> float | None:
        """Return since when others overtake a gang."""
        run = self._run_of.get(key)
        return run.overtaken.get(key) if run else None

    def add(self, gang: QueuedGang, overtaken: float | None = None) -> None:
        """Add a gang that is not there yet, and since when others overtake it."""
        key, pool = gang.entry.key, gang.entry.pool
        after = bisect_right(self._sorted, gang.order.rank, key=lambda run: run.rank)
        run = self._sorted[after - 1] if after else None
        if run is None or not run.continues_with(gang, overtaken):
            self._added += 1
            run = GangRun(pool, gang.kind, gang.order.rank, self._added)
            insort(self._sorted, run, key=_place)
        run.gangs[key] = run.unreported[key] = gang
        if overtaken is not None:
            run.overtaken[key] = overtaken
        self._run_of[key] = run
        self._pools.setdefault(pool.name, OrderedDict())[key] = pool

    def remove(self, key: Key) -> None:
        """Remove a gang."""
        run = self._run_of.pop(key)
        del run.gangs[key]
        run.overtaken.pop(key, None)
        run.unreported.pop(key, None)
        if not run.gangs:
            del self._sorted[bisect_left(self._sorted, _place(run), key=_place)]
        mine = self._pools[run.pool.name]
        del mine[key]
        if not mine:
            del self._pools[run.pool.name]


def _place(run: GangRun) -> tuple[_Rank, int]:
    return run.rank, run.number
