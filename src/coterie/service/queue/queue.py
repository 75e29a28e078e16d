"""The queue of one backend: gangs in order, with backfilling, and reservations against starvation.

A gang that does not fit now lets those behind it pass. Once the first waiting gang of a pool has been overtaken for
longer than `patience`, the nodes on which it would fit without Coterie's own tasks are reserved for it: running tasks
end, and none are added.

Searches cost time, so none is repeated in vain: gangs of one kind fit or fail alike, and a failed one is tried again
only after capacity was returned. An undecided search is not a refusal. It is continued with the whole budget, a part in
each cycle, so that no cycle waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from coterie.errors import Reason
from coterie.gang.edits import only_tasks, without_nodes
from coterie.gang.likeness import kind_of
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.explain.decision import decide
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Refusal, Verdict
from coterie.service.queue.cycle import LENT, QUEUE_BUDGET, CyclePlacements, PlacedGang, PlacementAttempt, QueueEntry
from coterie.service.queue.holdings import BackendHoldings, Key
from coterie.service.queue.open_searches import LongSearch
from coterie.service.queue.order import OrderInputs, in_order
from coterie.service.queue.reservations import Reservations

__all__ = ["PlacedGang", "Queue", "QueueEntry", "WaitReason", "only_tasks", "without_nodes"]

# How long a reported reason stays good enough to show, in seconds.
FRESH = 30.0
# How many reasons are computed in one cycle: each costs more than placing a gang.
EXPLAINED = 4

_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class WaitReason:
    """The reason why a gang waits, reported when it is new."""

    entry: QueueEntry
    decision: Decision


@dataclass(frozen=True, slots=True)
class _PlacementFailure:
    """No placement for a kind of gang: the freed capacity and closed nodes at that time, and the engine's answer.

    It holds as long as no more capacity is freed and at least those nodes are closed: less capacity never makes a
    placement possible. `asked` means that the whole budget was spent on it.
    """

    freed: int
    closed: frozenset[str]
    answer: NoPlacement
    asked: bool = False


@dataclass(frozen=True, slots=True)
class _OpenSearch:
    """A search with the whole budget that is in progress, and its conditions."""

    key: Key
    kind: object
    freed: int
    closed: frozenset[str]
    question: LongSearch


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
        self._waiting: dict[Key, QueueEntry] = {}
        self._kinds: dict[Key, object] = {}
        self._order_inputs: dict[Key, OrderInputs] = {}
        self._sizes: dict[Key, int] = {}
        self._anchored: dict[Key, int] = {}  # GPUs that tasks of the gang use already
        self._failed: dict[object, _PlacementFailure] = {}  # by kind
        self._open: _OpenSearch | None = None
        self._asked: dict[object, int] = {}  # kinds searched in full, by when: the last has the highest number
        self._reservations = Reservations(world)
        self._told: dict[object, tuple[float, Decision]] = {}
        self._said: dict[Key, tuple[str, str]] = {}
        self._passed: dict[Key, float] = {}  # since when others overtake it
        self._reserved: dict[Key, frozenset[str]] = {}
        self._crowd: set[Key] = set()  # those refused because too many tasks ran

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def put(self, entry: QueueEntry) -> None:
        """Queue a gang; one under a key that is already queued replaces it."""
        if self._waiting.get(entry.key) == entry:
            return
        passed = self._passed.get(entry.key)
        self.drop(entry.key)
        self._waiting[entry.key] = entry
        self._order_inputs[entry.key] = entry.order_inputs
        self._sizes[entry.key] = len(entry.gang.all_tasks())
        self._anchored[entry.key] = entry.anchored
        if passed is not None:
            self._passed[entry.key] = passed
        self._kinds[entry.key] = (
            entry.pool.name,
            entry.pool.topology,
            kind_of(entry.gang, anchors=entry.anchors),
        )

    def drop(self, key: Key) -> None:
        """Remove a waiting gang, if it is queued."""
        for known in (
            self._waiting,
            self._kinds,
            self._order_inputs,
            self._sizes,
            self._anchored,
            self._said,
            self._passed,
        ):
            known.pop(key, None)
        self._reservations.forget(key)
        if self._reserved.pop(key, None):
            self._failed.clear()  # a gang refused for want of the reserved nodes may fit now

    def keys_of(self, workflow: str) -> list[Key]:
        """Return the keys of a workflow's waiting gangs."""
        return [key for key in self._waiting if key[0] == workflow]

    def entries(self) -> list[QueueEntry]:
        """Return the waiting gangs in order, as long as none is placed."""
        return [self._waiting[key] for key in self._in_order()]

    def onto(self, world: BackendHoldings) -> Queue:
        """Return the same queue for other nodes: the waiting gangs and since when they are overtaken."""
        moved = Queue(world, self._patience, self._running)
        for entry in self._waiting.values():
            moved.put(entry)
        moved._passed.update(self._passed)
        if world is self.world:
            moved._open, moved._asked = self._open, self._asked
            moved._reservations = self._reservations
        return moved

    def starved(self, now: float) -> bool:
        """Return whether a gang that has waited too long for the machine itself may be placed in the next cycle."""
        return any(self._impatient(self._waiting[key], now) for key in self._crowd & self._waiting.keys())

    def cycle(self, now: float, *, shut: bool = False) -> Iterator[PlacedGang | WaitReason]:
        """Place the gangs that fit, in order; yield each, and every waiting gang with a new reason.

        Nothing is placed while `shut`, because a gang of another queue has waited too long for the machine.
        """
        refused: list[QueueEntry] = []
        tried: list[QueueEntry] = []
        kept: dict[Key, frozenset[str]] = {}
        placements = CyclePlacements(self.world)
        for entry in self._waiting.values():
            self.world.capacity(entry.pool)  # every view exists before nodes are closed in all of them
        overdue = {key for key in self._passed if self._impatient(self._waiting[key], now)}
        crowd: set[Key] = set()
        full: set[str] = set()  # pools in which no gang overtakes one that has waited too long under the limit
        with ExitStack() as closed:
            for key in self._in_order(overdue):
                entry = self._waiting[key]
                late = entry.pool.name in full and self._order_inputs[key].gpus > 0
                if not shut and not late:
                    if self._try(entry, placements, kept):
                        for passed in refused:
                            self._passed.setdefault(passed.key, now)
                        continue
                    tried.append(entry)
                refused.append(entry)
                if self._crowded(entry):
                    crowd.add(key)
                    self._passed.setdefault(key, now)  # perhaps by tasks of other queues on the same machine
                if self._impatient(entry, now):
                    shut = shut or key in crowd
                    if (over := self._over_quota(entry)) and over.verdict is Verdict.WAITING:
                        full.add(entry.pool.name)
                served = {self._waiting[key].pool.name for key in kept if key in self._waiting}
                if entry.pool.name not in served and (nodes := self._reservation(entry, now, kept)):
                    kept[entry.key] = nodes
                    closed.enter_context(self.world.closed(nodes))
        if found := self._ask_at_length(tried, placements, kept):
            for passed in refused[: refused.index(found)]:
                self._passed.setdefault(passed.key, now)
            refused.remove(found)
        self._reservations.end_cycle()
        self._reserved, self._crowd = kept, crowd
        yield from placements.placed()
        yield from self._reasons(refused, now)

    def _in_order(self, overdue: Container[Key] = ()) -> Iterator[Key]:
        quotas = {entry.pool.name: entry.pool.gpus for entry in self._waiting.values()}
        return in_order(self._order_inputs, self.world.gpus, quotas.__getitem__, overdue)

    def _try(self, entry: QueueEntry, placements: CyclePlacements, kept: Mapping[Key, frozenset[str]]) -> bool:
        """Place a gang if it fits, or if others of its workflow that were placed in this cycle can be moved."""
        kind = self._kinds[entry.key]
        closed = frozenset[str]().union(*kept.values())
        hopeless = self._failure(kind, closed) is not None
        if (hopeless and not placements.siblings(entry)) or self._over_quota(entry) or self._crowded(entry):
            return False
        attempt = PlacementAttempt(entry, self._present(entry), closed)
        seated = (not hopeless and self._place(attempt, placements)) or placements.place_jointly(attempt, kind)
        if seated:
            self.drop(entry.key)
        return seated

    def _place(self, attempt: PlacementAttempt, placements: CyclePlacements) -> bool:
        entry = attempt.entry
        found = place(entry.gang, self.world.capacity(entry.pool), anchors=attempt.anchors, budget=QUEUE_BUDGET)
        if isinstance(found, Found):
            placements.hold(attempt, found)
            return True
        self._fail(self._kinds[entry.key], _PlacementFailure(self.world.freed, attempt.kept, found))
        return False

    def _failure(self, kind: object, closed: frozenset[str] | None = None) -> _PlacementFailure | None:
        """Return why a kind of gang does not fit, if that still holds with these nodes closed, or with any."""
        known = self._failed.get(kind)
        if known is None or known.freed != self.world.freed:
            return None
        return known if closed is None or known.closed <= closed else None

    def _fail(self, kind: object, failure: _PlacementFailure) -> None:
        if len(self._failed) > _REMEMBERED:
            self._failed.clear()
        self._failed[kind] = failure

    def _ask_at_length(
        self, tried: Sequence[QueueEntry], placements: CyclePlacements, kept: Mapping[Key, frozenset[str]]
    ) -> QueueEntry | None:
        """Continue one undecided search, and place the gang if the result is still free."""
        if self._open and self._kinds.get(self._open.key) != self._open.kind:
            self._open = None
        if self._open is None:
            self._open = self._next_question(tried, kept)
        entry = next((one for one in tried if self._open and one.key == self._open.key), None)
        if self._open is None or entry is None:
            return None
        answer = self._open.question.go_on(LENT)
        if answer is None:
            return None
        asked, self._open = self._open, None
        if isinstance(answer, NoPlacement):
            self._fail(asked.kind, _PlacementFailure(asked.freed, asked.closed, answer, asked=True))
            return None
        closed = _kept_for_others(entry, kept)
        with self.world.closed(closed):
            fits = self._unhindered(entry) and _still_fits(answer, entry, self.world.capacity(entry.pool))
        if fits:
            placements.hold(PlacementAttempt(entry, self._present(entry), closed), answer)
            self.drop(entry.key)
        return entry if fits else None

    def _next_question(self, tried: Sequence[QueueEntry], kept: Mapping[Key, frozenset[str]]) -> _OpenSearch | None:
        """Start the undecided search that was not continued for the longest time."""
        for entry in sorted(tried, key=lambda one: self._asked.get(self._kinds[one.key], 0)):
            kind, closed = self._kinds[entry.key], _kept_for_others(entry, kept)
            known = self._failure(kind, closed)
            if known is None or known.answer.proved or known.asked or not self._unhindered(entry):
                continue
            if len(self._asked) > _REMEMBERED:
                self._asked.clear()
            self._asked[kind] = 1 + max(self._asked.values(), default=0)
            with self.world.closed(closed):
                capacity = self.world.capacity(entry.pool).copy()
            question = LongSearch(entry.gang, capacity, self._present(entry))
            return _OpenSearch(entry.key, kind, self.world.freed, closed, question)
        return None

    def _unhindered(self, entry: QueueEntry) -> bool:
        return not self._over_quota(entry) and not self._crowded(entry)

    def _present(self, entry: QueueEntry) -> dict[str, str]:
        """Return the anchors whose nodes still exist."""
        known = self.world.cluster.position
        return {task: node for task, node in entry.anchors.items() if node in known}

    def _reservation(self, entry: QueueEntry, now: float, kept: Mapping[Key, frozenset[str]]) -> frozenset[str]:
        """Return the nodes reserved for a gang which has been overtaken for too long."""
        if not self._impatient(entry, now) or self._over_quota(entry):
            return frozenset()
        taken = frozenset[str]().union(*kept.values())
        known = self._reserved.get(entry.key)
        if known and not known & taken:
            return known
        return self._reservations.find(entry, self._present(entry), taken)

    def _impatient(self, entry: QueueEntry, now: float) -> bool:
        since = self._passed.get(entry.key)
        return since is not None and now - since >= self._patience

    def _crowded(self, entry: QueueEntry) -> Decision | None:
        # Tasks that join running ones had a process before; if they were refused for want of one, their whole gang
        # would have to move.
        used, most = self._running()
        wanted = self._sizes[entry.key]
        if entry.anchors or not used or used + wanted <= most:
            return None
        refusal = Refusal(Reason.NO_CAPACITY, wanted=wanted, running=(used, most))
        return Decision(Verdict.WAITING, refusal=refusal)

    def _over_quota(self, entry: QueueEntry) -> Decision | None:
        limit = entry.pool.gpus.limit
        if limit is None:
            return None
        running = self._anchored[entry.key]
        quota = Quota(self.world.gpus(entry.pool.name) - running, limit)
        return quota.refused(self._order_inputs[entry.key].gpus + running, running=running)

    def _reasons(self, refused: Iterable[QueueEntry], now: float) -> Iterator[WaitReason]:
        """Yield the new reasons of waiting gangs; those that exceed the number per cycle come later."""
        left = EXPLAINED
        for entry in refused:
            kind = self._kinds[entry.key]
            known = self._told.get(kind)
            if (over := self._over_quota(entry)) is not None:
                known = self._remember(kind, now, over)  # computed at no cost, and so never out of date
            elif known is None or _is_quota(known[1]) or now - known[0] > FRESH or entry.anchors:
                if left:
                    left -= 1
                    known = self._remember(kind, now, self._explained(entry))
                elif known is None:
                    continue
            said = _said(known[1]) if known else ("", "")
            if known and self._said.get(entry.key) != said:
                self._said[entry.key] = said
                yield WaitReason(entry, known[1])

    def _remember(self, kind: object, now: float, decision: Decision) -> tuple[float, Decision]:
        if len(self._told) > _REMEMBERED:
            self._told.clear()
        self._told[kind] = (now, decision)
        return now, decision

    def _explained(self, entry: QueueEntry) -> Decision:
        if (refused := self._over_quota(entry)) is not None:
            return refused
        pool, anchors = entry.pool, self._present(entry)
        failure = self._failure(self._kinds[entry.key], frozenset())
        decision = decide(
            entry.gang,
            self.world.capacity(pool),
            self.world.empty(pool),
            anchors=anchors,
            budget=QUEUE_BUDGET,
            known=failure.answer if failure else None,
        )
        if decision.found is None:
            return decision
        if (crowded := self._crowded(entry)) is not None:
            return crowded
        # It fits, but the capacity is reserved for a gang that has waited longer.
        refusal = Refusal(Reason.NO_CAPACITY, wanted=len(entry.gang.all_tasks()), reserved=True)
        return Decision(Verdict.WAITING, refusal=refusal)


def _kept_for_others(entry: QueueEntry, kept: Mapping[Key, frozenset[str]]) -> frozenset[str]:
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


def _is_quota(decision: Decision) -> bool:
    return decision.refusal is not None and decision.refusal.reason is Reason.OVER_QUOTA


def _said(decision: Decision) -> tuple[str, str]:
    return decision.verdict.value, decision.refusal.reason.value if decision.refusal else ""
