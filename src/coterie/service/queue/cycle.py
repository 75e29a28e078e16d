"""The placements of one queue cycle; until it ends, groups of a workflow may still be moved for another of them.

Gangs are placed one by one. Where one does not fit, those of its workflow that were placed in the same cycle run
nothing yet, so all of them are placed jointly, if possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.config.configuration import Pool
from coterie.gang.edits import without_nodes
from coterie.gang.tree import Gang
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.engine import Found, NoPlacement
from coterie.placement.joint import DecidedFamily, JointCapacity, JointPlacement, place_together
from coterie.placement.refusal import Decision, Verdict
from coterie.service.queue.holdings import Held, Key, World
from coterie.service.queue.order import Turn
from coterie.topology.cluster import GPU

# A queue cycle has a small budget: a search that does not finish with it is continued later.
QUEUE_BUDGET = DEFAULT_BUDGET // 10
# How many steps of an undecided search are taken in one cycle.
LENT = QUEUE_BUDGET // 2


@dataclass(frozen=True)
class Entry:
    """A waiting gang: whole, or the tasks of it that are to join the running `anchors`."""

    key: Key
    pool: Pool
    gang: Gang
    priority: str
    since: float
    number: int
    anchors: Mapping[str, str] = field(default_factory=dict)

    @property
    def turn(self) -> Turn:
        """The inputs of its queue order; of GPUs, those that it would newly take."""
        gpus = sum(task.shape.amount(GPU) for task in self.gang.all_tasks() if task.name not in self.anchors)
        return Turn(self.pool.name, bool(self.anchors), self.priority, self.since, self.number, gpus)

    @property
    def anchored(self) -> int:
        """The GPUs that tasks of the gang use already."""
        return sum(task.shape.amount(GPU) for task in self.gang.all_tasks() if task.name in self.anchors)


@dataclass(frozen=True, slots=True)
class Seated:
    """A placed gang with its holdings."""

    entry: Entry
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class Guest:
    """A gang to be placed: its running tasks, and the nodes reserved for others."""

    entry: Entry
    anchors: Mapping[str, str]
    kept: frozenset[str] = frozenset()

    @property
    def party(self) -> tuple[str, str]:
        """The workflow and the pool, whose gangs may be placed jointly."""
        return _party(self.entry)

    @property
    def gang(self) -> Gang:
        """The gang without the nodes kept for others: tasks that were there before may stay, new ones may not come."""
        return without_nodes(self.entry.gang, self.kept)


@dataclass(eq=False)
class Tables:
    """The placed gangs of one cycle."""

    world: World
    _guests: dict[Key, Guest] = field(default_factory=dict)
    _found: dict[Key, Found] = field(default_factory=dict)
    _held: dict[Key, tuple[Held, ...]] = field(default_factory=dict)
    _parties: dict[tuple[str, str], dict[Key, None]] = field(default_factory=dict)
    _failed: set[tuple[tuple[str, str], object]] = field(default_factory=set)

    def seated(self) -> Iterator[Seated]:
        """Yield the placed gangs, in order."""
        return (Seated(guest.entry, self._held[key]) for key, guest in self._guests.items())

    def mates(self, entry: Entry) -> list[Guest]:
        """Return the placed gangs of the same workflow."""
        return [self._guests[key] for key in self._parties.get(_party(entry), ())]

    def seat(self, guest: Guest, found: Found) -> None:
        """Hold a gang's part of a placement."""
        entry = guest.entry
        shapes = {task.name: task.shape for task in entry.gang.all_tasks()}
        nodes = {task: found.nodes[task] for task in shapes if task not in entry.anchors}
        self._held[entry.key] = self.world.hold(entry.key, entry.pool.name, nodes, shapes)
        self._guests[entry.key], self._found[entry.key] = guest, found
        self._parties.setdefault(guest.party, {})[entry.key] = None

    def make_room(self, guest: Guest, kind: object) -> bool:
        """Place a gang jointly with the others of its workflow, which may move; return whether that worked.

        Gangs of one `kind` fit or fail alike.
        """
        mates = self.mates(guest.entry)
        if not mates or (guest.party, kind) in self._failed:
            return False
        answer = self._together(mates, guest)
        if isinstance(answer, NoPlacement):
            self._failed.add((guest.party, kind))
            return False
        for mate in mates:
            key = mate.entry.key
            self.world.release(key, [one.task for one in self._held.pop(key)])
        for one, settled in zip((*mates, guest), answer.families, strict=True):
            (decision,) = settled.decisions
            if decision.found is None:
                raise AssertionError("gangs that are placed together all have a place")
            self.seat(one, decision.found)
        return True

    def _together(self, mates: Sequence[Guest], guest: Guest) -> JointPlacement | NoPlacement:
        pool = guest.entry.pool
        capacity = self.world.capacity(pool).copy()
        for mate in mates:
            for one in self._held[mate.entry.key]:
                capacity.take(one.shape, [capacity.domains.position[one.node]], [-1])
        anchors = {task: node for one in (*mates, guest) for task, node in one.anchors.items()}
        seated = [
            DecidedFamily((mate.gang,), (Decision(Verdict.PLACED, found=self._found[mate.entry.key]),))
            for mate in mates
        ]
        return place_together(
            seated, [guest.gang], JointCapacity(capacity, self.world.empty(pool), anchors), QUEUE_BUDGET
        )


def _party(entry: Entry) -> tuple[str, str]:
    return entry.key[0], entry.pool.name
