"""The placements of one queue cycle; until it ends, groups of a workflow may still be moved for another of them.

Gangs are placed one by one. Where one does not fit, those of its workflow that were placed in the same cycle run
nothing yet, so all of them are placed jointly, if possible.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from coterie.config.configuration import Pool
from coterie.gang.edits import without_nodes
from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.engine import Found, NoPlacement
from coterie.placement.joint import DecidedFamily, JointCapacity, JointPlacement, place_together
from coterie.placement.refusal import Decision, Verdict
from coterie.service.queue.holdings import BackendHoldings, Key, TaskHolding
from coterie.service.queue.order import OrderInputs

# A queue cycle has a small budget: a search that does not finish with it is continued later.
QUEUE_BUDGET = DEFAULT_BUDGET // 10
# How many steps of an undecided search are taken in one cycle.
LENT = QUEUE_BUDGET // 2
# How many kinds of gangs are known by their number; a forgotten one gets a new number, and is searched for again.
_KINDS = 4096


@dataclass(frozen=True)
class QueueEntry:
    """A waiting gang: whole, or the tasks of it that are to join the running `anchors`."""

    key: Key
    pool: Pool
    gang: Gang
    priority: str
    since: float
    number: int
    anchors: Mapping[str, str] = field(default_factory=dict)

    @property
    def order_inputs(self) -> OrderInputs:
        """The inputs of its queue order; of GPUs, those that it would newly take."""
        gpus = sum(task.shape.gpus for task in self.gang.all_tasks() if task.name not in self.anchors)
        return OrderInputs(self.pool.name, bool(self.anchors), self.priority, self.since, self.number, gpus)

    @property
    def anchored(self) -> int:
        """The GPUs that tasks of the gang use already."""
        return sum(task.shape.gpus for task in self.gang.all_tasks() if task.name in self.anchors)


@dataclass(frozen=True, slots=True, eq=False)
class QueuedGang:
    """A queued gang with what follows from it: its kind, its order, and its size.

    `anchored` are the GPUs that tasks of it use already.
    """

    entry: QueueEntry
    kind: int
    order: OrderInputs
    size: int
    anchored: int

    @staticmethod
    def of(entry: QueueEntry) -> QueuedGang:
        """Return the gang of an entry."""
        kind = (entry.pool.name, entry.pool.topology, kind_of(entry.gang, anchors=entry.anchors))
        return QueuedGang(entry, _number(kind), entry.order_inputs, len(entry.gang.all_tasks()), entry.anchored)


_next_number = itertools.count()


@lru_cache(maxsize=_KINDS)
def _number(_kind: Hashable) -> int:
    """Return a number that stands for a kind of gang: it is compared far more often than it is computed."""
    return next(_next_number)


@dataclass(frozen=True, slots=True)
class PlacedGang:
    """A placed gang with its holdings."""

    entry: QueueEntry
    held: tuple[TaskHolding, ...]


@dataclass(frozen=True, slots=True)
class PlacementAttempt:
    """A gang to be placed: its running tasks, and the nodes reserved for others."""

    entry: QueueEntry
    anchors: Mapping[str, str]
    kept: frozenset[str] = frozenset()

    @property
    def joint_key(self) -> tuple[str, str]:
        """The workflow and the pool, whose gangs may be placed jointly."""
        return _joint_key(self.entry)

    @property
    def gang(self) -> Gang:
        """The gang without the nodes reserved for others: tasks already there may stay, new ones may not be added."""
        return without_nodes(self.entry.gang, self.kept)


@dataclass(eq=False)
class CyclePlacements:
    """The placed gangs of one cycle."""

    world: BackendHoldings
    _attempts: dict[Key, PlacementAttempt] = field(default_factory=dict)
    _found: dict[Key, Found] = field(default_factory=dict)
    _held: dict[Key, tuple[TaskHolding, ...]] = field(default_factory=dict)
    _by_joint_key: dict[tuple[str, str], dict[Key, None]] = field(default_factory=dict)
    _failed: set[tuple[tuple[str, str], object]] = field(default_factory=set)

    def placed(self) -> Iterator[PlacedGang]:
        """Yield the placed gangs, in order."""
        return (PlacedGang(attempt.entry, self._held[key]) for key, attempt in self._attempts.items())

    def siblings(self, entry: QueueEntry) -> list[PlacementAttempt]:
        """Return the placed gangs of the same workflow."""
        return [self._attempts[key] for key in self._by_joint_key.get(_joint_key(entry), ())]

    def hold(self, attempt: PlacementAttempt, found: Found) -> None:
        """Hold a gang's part of a placement."""
        entry = attempt.entry
        shapes = {task.name: task.shape for task in entry.gang.all_tasks()}
        nodes = {task: found.nodes[task] for task in shapes if task not in entry.anchors}
        self._held[entry.key] = self.world.hold(entry.key, entry.pool.name, nodes, shapes)
        self._attempts[entry.key], self._found[entry.key] = attempt, found
        self._by_joint_key.setdefault(attempt.joint_key, {})[entry.key] = None

    def place_jointly(self, attempt: PlacementAttempt, kind: object) -> bool:
        """Place a gang jointly with the others of its workflow, which may move; return whether that worked.

        Gangs of one `kind` fit or fail alike.
        """
        siblings = self.siblings(attempt.entry)
        if not siblings or (attempt.joint_key, kind) in self._failed:
            return False
        answer = self._together(siblings, attempt)
        if isinstance(answer, NoPlacement):
            self._failed.add((attempt.joint_key, kind))
            return False
        for sibling in siblings:
            key = sibling.entry.key
            self.world.release(key, [one.task for one in self._held.pop(key)])
        for one, settled in zip((*siblings, attempt), answer.families, strict=True):
            (decision,) = settled.decisions
            if decision.found is None:
                raise AssertionError("every jointly placed gang has a placement")
            self.hold(one, decision.found)
        return True

    def _together(
        self, siblings: Sequence[PlacementAttempt], attempt: PlacementAttempt
    ) -> JointPlacement | NoPlacement:
        pool = attempt.entry.pool
        capacity = self.world.capacity(pool).copy()
        for sibling in siblings:
            for one in self._held[sibling.entry.key]:
                capacity.take(one.shape, [capacity.domains.position[one.node]], [-1])
        anchors = {task: node for one in (*siblings, attempt) for task, node in one.anchors.items()}
        seated = [
            DecidedFamily((sibling.gang,), (Decision(Verdict.PLACED, found=self._found[sibling.entry.key]),))
            for sibling in siblings
        ]
        return place_together(
            seated, [attempt.gang], JointCapacity(capacity, self.world.empty(pool), anchors), QUEUE_BUDGET
        )


def _joint_key(entry: QueueEntry) -> tuple[str, str]:
    return entry.key[0], entry.pool.name
