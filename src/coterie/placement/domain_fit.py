"""The largest gang of equal tasks that each domain can hold; for one shape counting is exact, without a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.topology.cluster import UNLIMITED_PODS
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class DomainRoom:
    """The content of one domain: tasks of the shape now and if it were empty, its nodes, and its free GPUs."""

    domain: tuple[str, ...]
    now: int
    empty: int
    nodes: int
    free_gpus: int

    def gangs(self, tasks: int) -> int:
        """Return how many gangs of this many tasks fit in here at once, now."""
        return self.now // tasks

    def empty_gangs(self, tasks: int) -> int:
        """Return how many gangs of this many tasks would fit in here if it were empty."""
        return self.empty // tasks


@dataclass(frozen=True, slots=True)
class LevelFit:
    """The room for one shape in every domain of a level, best first, and on nodes that are in none of them."""

    rooms: tuple[DomainRoom, ...]
    outside: DomainRoom

    @property
    def total(self) -> DomainRoom:
        """The sum over the domains."""
        return DomainRoom(
            (),
            sum(room.now for room in self.rooms),
            sum(room.empty for room in self.rooms),
            sum(room.nodes for room in self.rooms),
            sum(room.free_gpus for room in self.rooms),
        )

    def gangs(self, tasks: int) -> tuple[int, int]:
        """Return how many gangs of this many tasks, each in one domain, fit at once: now, and on the empty cluster."""
        return sum(room.gangs(tasks) for room in self.rooms), sum(room.empty_gangs(tasks) for room in self.rooms)


def level_fit(shape: Shape, domains: Domains, level: str, *, labelled_only: bool = False) -> LevelFit:
    """Count how many tasks of a shape each domain of a level holds, now and on the empty cluster.

    With `labelled_only`, nodes that lack the label of any level do not count, as for a scheduler that cannot see them.
    Domains are sorted by what fits now, then by what fits when empty; equal ones keep their natural order.
    """
    tier = domains.tiers[domains.topology.index(level)]
    now, empty = Capacity.now(domains), Capacity.empty(domains)
    if labelled_only:
        for capacity in (now, empty):
            capacity.usable &= domains.tiers[-1].of >= 0
    per_node = [np.minimum(capacity.fit(shape).fits, UNLIMITED_PODS) for capacity in (now, empty)]
    idle = np.maximum(domains.cluster.gpus(now.free), 0) * now.usable
    sums = [tier.sums(values).tolist() for values in (*per_node, idle)]
    rooms = [
        DomainRoom(domain, fits, fits_empty, nodes, gpus)
        for domain, fits, fits_empty, gpus, nodes in zip(
            tier.values, *sums, (tier.end - tier.start).tolist(), strict=True
        )
    ]
    outside = tier.of < 0
    fits, fits_empty = (int(values[outside].sum()) for values in per_node)
    rest = DomainRoom((), fits, fits_empty, int(outside.sum()), int(idle[outside].sum()))
    return LevelFit(tuple(sorted(rooms, key=lambda room: (-room.now, -room.empty))), rest)
