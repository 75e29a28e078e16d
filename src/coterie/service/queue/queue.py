"""The queue of one backend: gangs in order, with backfilling, and reservations against starvation.

A gang that does not fit now lets those behind it pass. Once the first waiting gang of a pool has been overtaken for
longer than `patience`, the nodes on which it would fit without Coterie's own tasks are reserved for it: running tasks
end, and none are added.

Searches cost time, so none is repeated in vain: gangs of one kind fit or fail alike, and a failed one is tried again
only after capacity was returned. Of neighbours of one kind, a cycle looks at none behind the first that fails. An
undecided search is not a refusal. It is continued with the whole budget, a part in each cycle, so that no cycle waits
for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice, takewhile

from coterie.gang.edits import only_tasks, without_nodes
from coterie.placement.engine import Found, place
from coterie.placement.refusal import Verdict
from coterie.service.queue.cycle import (
    QUEUE_BUDGET,
    CyclePlacements,
    PlacedGang,
    PlacementAttempt,
    QueuedGang,
    QueueEntry,
)
from coterie.service.queue.failures import PlacementFailure, PlacementFailures
from coterie.service.queue.holdings import BackendHoldings, Key
from coterie.service.queue.limits import CycleLimits, QueueLimits
from coterie.service.queue.order import EqualGangs, shared_order
from coterie.service.queue.ranking import GangRun, Ranking
from coterie.service.queue.reservations import Reservations
from coterie.service.queue.undecided import UndecidedSearches
from coterie.service.queue.wait_reasons import WaitReason, WaitReasons

__all__ = ["PlacedGang", "Queue", "QueueEntry", "WaitReason", "only_tasks", "without_nodes"]


class Queue:
    """The waiting gangs of one backend.

    `running` returns the number of tasks that run on the machine behind the nodes, and their limit. A gang of more
    tasks than that runs when nothing else does.
    """

    def __init__(
        self, world: BackendHoldings, patience: float = 60.0, running: Callable[[], tuple[int, int]] | None = None
    ) -> None:
        self.world = world
        self._patience = patience
        self._running = running or (lambda: (0, 0))
        self._waiting: dict[Key, QueuedGang] = {}
        self._ranking = Ranking()
        self._of_workflow: dict[str, dict[Key, None]] = {}
        self._failures = PlacementFailures(world)
        self._limits = QueueLimits(world, self._running)
        self._undecided = UndecidedSearches(world, self._failures, self._limits)
        self._reasons = WaitReasons(world, self._failures, self._limits)
        self._reservations = Reservations(world)
        self._reserved: dict[Key, frozenset[str]] = {}
        self._over_limit: set[Key] = set()  # the first of each run that were refused because too many tasks ran

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def put(self, entry: QueueEntry) -> None:
        """Queue a gang; one under a key that is already queued replaces it."""
        key, known = entry.key, self._waiting.get(entry.key)
        if known is not None and known.entry == entry:
            return
        self._put(entry, self._ranking.overtaken_since(key))

    def _put(self, entry: QueueEntry, overtaken: float | None) -> None:
        key = entry.key
        over_limit = key in self._over_limit
        self.drop(key)
        gang = self._waiting[key] = QueuedGang.of(entry)
        self._ranking.add(gang, overtaken)
        self._of_workflow.setdefault(key[0], {})[key] = None
        if over_limit:
            self._over_limit.add(key)

    def drop(self, key: Key) -> None:
        """Remove a waiting gang, if it is queued."""
        if self._waiting.pop(key, None) is not None:
            if key in self._over_limit:
                self._over_limit.remove(key)
                run = self._ranking.run_of(key)
                if run and (following := run.after(key)):
                    self._over_limit.add(following)
            self._ranking.remove(key)
            mine = self._of_workflow[key[0]]
            del mine[key]
            if not mine:
                del self._of_workflow[key[0]]
        self._reservations.forget(key)
        if self._reserved.pop(key, None):
            self._failures.clear()  # a gang refused for want of the reserved nodes may fit now

    def keys_of(self, workflow: str) -> list[Key]:
        """Return the keys of a workflow's waiting gangs."""
        return list(self._of_workflow.get(workflow, ()))

    def entries(self) -> list[QueueEntry]:
        """Return the waiting gangs in order, as long as none is placed."""
        gangs: dict[GangRun, Iterator[QueuedGang]] = {run: iter(run.gangs.values()) for run in self._ranking}
        return [gang.entry for run, count in self._in_order() for gang in islice(gangs[run], count)]

    def onto(self, world: BackendHoldings) -> Queue:
        """Return the same queue for other nodes: the waiting gangs and since when they are overtaken."""
        moved = Queue(world, self._patience, self._running)
        for gang in self._waiting.values():
            moved._put(gang.entry, self._ranking.overtaken_since(gang.entry.key))
        if world is self.world:
            moved._undecided.inherit(self._undecided)
            moved._reservations = self._reservations
        return moved

    def starved(self, now: float) -> bool:
        """Return whether a gang that has waited too long for the machine itself may be placed in the next cycle."""
        return any(self._impatient(self._ranking.overtaken_since(key), now) for key in self._over_limit)

    def cycle(self, now: float, *, shut: bool = False) -> Iterator[PlacedGang | WaitReason]:
        """Place the gangs that fit, in order; yield each, and every waiting gang with a new reason.

        Nothing is placed while `shut`, because a gang of another queue has waited too long for the machine.
        """
        refused: dict[GangRun, int] = {}  # how many of the first gangs
        ahead: list[tuple[GangRun, int]] = []  # those refused, in order, and how many of each run until then
        overtaken = 0  # how many of `ahead` were refused before the last placement
        tried: list[QueuedGang] = []
        kept: dict[Key, frozenset[str]] = {}
        placements = CyclePlacements(self.world)
        limits = CycleLimits(self._limits)
        for pool in self._ranking.pools.values():
            self.world.capacity(pool)  # every view exists before nodes are closed in all of them
        over_limit: set[Key] = set()
        full: set[str] = set()  # pools in which no gang overtakes one that has waited too long under the limit
        with ExitStack() as closed:
            for run, count in self._candidates(now, refused):
                position = refused.get(run, 0)
                gang = run.at(position)
                pool_name = gang.entry.pool.name
                late = pool_name in full and gang.order.gpus > 0
                if not position and not shut and not late:
                    if self._try(gang, limits, placements, kept):
                        self._overtake(islice(ahead, overtaken, None), now)
                        overtaken = len(ahead)
                        continue
                    tried.append(gang)
                refused[run] = position + count
                ahead.append((run, position + count))
                if exceeds := limits.exceeds_task_limit(gang):
                    over_limit.add(gang.entry.key)
                    run.overtake(position + count, now)  # perhaps by tasks of other queues on the same machine
                if not self._impatient(run.overtaken_since(position), now):
                    continue
                shut = shut or exceeds
                if (over := self._limits.over_quota(gang)) and over.verdict is Verdict.WAITING:
                    full.add(pool_name)
                served = {self._waiting[key].entry.pool.name for key in kept if key in self._waiting}
                if pool_name not in served and (nodes := self._reservation(gang, kept)):
                    kept[gang.entry.key] = nodes
                    closed.enter_context(self.world.closed(nodes))
        self._over_limit = over_limit
        if found := self._undecided.go_on(self._waiting, tried, placements, kept):
            mine = self._ranking.run_of(found.entry.key)
            self.drop(found.entry.key)
            self._overtake(takewhile(lambda each: each[0] is not mine, ahead), now)
        self._reservations.end_cycle()
        self._reserved = kept
        yield from placements.placed()
        yield from self._reasons.new([run for run in refused if run.gangs], now)

    def _candidates(self, now: float, refused: Container[GangRun]) -> Iterator[tuple[GangRun, int]]:
        """Yield the runs whose next gang is to be tried, in order, with how many would be refused together with it.

        Once a gang of a run was refused, the others are not tried.
        """

        def overdue(run: GangRun, position: int) -> bool:
            return self._impatient(run.overtaken_since(position), now)

        for run, count in self._in_order(overdue, refused):
            left = count
            while left:
                yield run, left
                left = 0 if run in refused else left - 1

    def _in_order(
        self, overdue: Callable[[GangRun, int], bool] = lambda _run, _position: False, refused: Container[GangRun] = ()
    ) -> Iterator[tuple[GangRun, int]]:
        pools = self._ranking.pools
        runs = [EqualGangs(run, run.first.order, len(run.gangs)) for run in self._ranking]
        return shared_order(runs, pools.keys(), self.world.gpus, lambda pool: pools[pool].gpus, overdue, refused)

    def _try(
        self,
        gang: QueuedGang,
        limits: CycleLimits,
        placements: CyclePlacements,
        kept: Mapping[Key, frozenset[str]],
    ) -> bool:
        """Place a gang if it fits, or if others of its workflow that were placed in this cycle can be moved."""
        if limits.blocks(gang):
            return False
        entry = gang.entry
        closed = frozenset[str]().union(*kept.values())
        hopeless = self._failures.find(gang.kind, closed) is not None
        if hopeless and not placements.siblings(entry):
            return False
        attempt = PlacementAttempt(entry, self.world.present(entry.anchors), closed)
        seated = (not hopeless and self._place(gang, attempt, placements)) or placements.place_jointly(
            attempt, gang.kind
        )
        if seated:
            self.drop(entry.key)
        return seated

    def _place(self, gang: QueuedGang, attempt: PlacementAttempt, placements: CyclePlacements) -> bool:
        entry = gang.entry
        found = place(entry.gang, self.world.capacity(entry.pool), anchors=attempt.anchors, budget=QUEUE_BUDGET)
        if isinstance(found, Found):
            placements.hold(attempt, found)
            return True
        self._failures.add(gang.kind, PlacementFailure(self.world.freed, attempt.kept, found))
        return False

    def _reservation(self, gang: QueuedGang, kept: Mapping[Key, frozenset[str]]) -> frozenset[str]:
        """Return the nodes reserved for a gang which has been overtaken for too long."""
        entry = gang.entry
        if self._limits.over_quota(gang):
            return frozenset()
        taken = frozenset[str]().union(*kept.values())
        known = self._reserved.get(entry.key)
        if known and not known & taken:
            return known
        return self._reservations.find(entry, self.world.present(entry.anchors), taken)

    @staticmethod
    def _overtake(refused: Iterable[tuple[GangRun, int]], now: float) -> None:
        for run, count in refused:
            run.overtake(count, now)

    def _impatient(self, overtaken: float | None, now: float) -> bool:
        """Return whether a gang has been overtaken for too long."""
        return overtaken is not None and now - overtaken >= self._patience
