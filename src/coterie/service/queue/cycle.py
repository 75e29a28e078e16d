"""Who was seated in one cycle of the queue: until it is over, groups of a workflow may still change places for another.

Gangs are seated one by one. Where one finds no room, those of its workflow that were seated in the same cycle run
nothing yet, so all of them are placed together, if that can be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.config.configuration import Pool
from coterie.gang import edits
from coterie.gang.tree import Gang
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.engine import Found, place
from coterie.service.queue.holdings import Held, Key, World
from coterie.service.queue.order import Turn
from coterie.topology.cluster import GPU

# A queue has no time for hard questions: what is not found with this is asked again later.
QUEUE_BUDGET = DEFAULT_BUDGET // 10
# How many steps of a question that was left open are taken in one cycle.
LENT = QUEUE_BUDGET // 2


@dataclass(frozen=True)
class Entry:
    """A gang that waits: whole, or the tasks of it that are to join the `anchors`, which run already."""

    key: Key
    pool: Pool
    gang: Gang
    priority: str
    since: float
    number: int
    anchors: Mapping[str, str] = field(default_factory=dict)

    @property
    def turn(self) -> Turn:
        """All that its turn depends on; of GPUs, those that it would newly take."""
        gpus = sum(task.shape.amount(GPU) for task in self.gang.all_tasks() if task.name not in self.anchors)
        return Turn(self.pool.name, bool(self.anchors), self.priority, self.since, self.number, gpus)


@dataclass(frozen=True, slots=True)
class Seated:
    """A gang that has found its place, and holds it."""

    entry: Entry
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class Guest:
    """A gang that is to be seated: its tasks that run already, and the nodes that are kept for others."""

    entry: Entry
    anchors: Mapping[str, str]
    kept: frozenset[str] = frozenset()

    @property
    def party(self) -> tuple[str, str]:
        """The workflow and the pool, whose gangs may be placed together."""
        return _party(self.entry)


@dataclass(eq=False)
class Tables:
    """The gangs of one cycle that hold their places."""

    world: World
    _guests: dict[Key, Guest] = field(default_factory=dict)
    _held: dict[Key, tuple[Held, ...]] = field(default_factory=dict)
    _parties: dict[tuple[str, str], dict[Key, None]] = field(default_factory=dict)
    _failed: set[tuple[tuple[str, str], object]] = field(default_factory=set)

    def seated(self) -> Iterator[Seated]:
        """Yield who was seated, in turn."""
        return (Seated(guest.entry, self._held[key]) for key, guest in self._guests.items())

    def mates(self, entry: Entry) -> list[Guest]:
        """Return who of the same workflow was seated."""
        return [self._guests[key] for key in self._parties.get(_party(entry), ())]

    def seat(self, guest: Guest, found: Found) -> None:
        """Let a gang hold its part of a placement."""
        entry = guest.entry
        shapes = {task.name: task.shape for task in entry.gang.all_tasks()}
        nodes = {task: found.nodes[task] for task in shapes if task not in entry.anchors}
        self._held[entry.key] = self.world.hold(entry.key, entry.pool.name, nodes, shapes)
        self._guests[entry.key] = guest
        self._parties.setdefault(guest.party, {})[entry.key] = None

    def make_room(self, guest: Guest, kind: object) -> bool:
        """Seat a gang together with its mates, who may have to move; tell whether that worked.

        Gangs of one `kind` fit or fail alike.
        """
        mates = self.mates(guest.entry)
        if not mates or (guest.party, kind) in self._failed:
            return False
        found = self._together([*mates, guest])
        if found is None:
            self._failed.add((guest.party, kind))
            return False
        for mate in mates:
            key = mate.entry.key
            self.world.release(key, [one.task for one in self._held.pop(key)])
        for one in (*mates, guest):
            self.seat(one, found)
        return True

    def _together(self, guests: Sequence[Guest]) -> Found | None:
        capacity = self.world.capacity(guests[0].entry.pool).copy()
        for guest in guests:
            for one in self._held.get(guest.entry.key, ()):
                capacity.take(one.shape, [capacity.domains.position[one.node]], [-1])
        # On a node that is kept for somebody, who was there before it was kept may stay, and nobody else may come.
        gang = edits.side_by_side([edits.without_nodes(guest.entry.gang, guest.kept) for guest in guests])
        anchors = {task: node for guest in guests for task, node in guest.anchors.items()}
        found = place(gang, capacity, anchors=anchors, budget=QUEUE_BUDGET)
        return found if isinstance(found, Found) else None


def _party(entry: Entry) -> tuple[str, str]:
    return entry.key[0], entry.pool.name
