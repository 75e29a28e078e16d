"""The question to the engine about a gang that waits in the queue of its own scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.config.configuration import Pool
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.explain.decision import decide
from coterie.placement.refusal import Refusal, Verdict
from coterie.rendering import refusals
from coterie.service.queue.cycle import QUEUE_BUDGET
from coterie.service.queue.holdings import BackendHoldings
from coterie.topology.domains import Domains

_REFUSED = (Verdict.WAITING, Verdict.IMPOSSIBLE)


@dataclass(frozen=True, slots=True)
class EngineQuestion:
    """A gang, the nodes with everything that runs there, and the tasks of the gang that already run."""

    pool: Pool
    gang: Gang
    world: BackendHoldings
    anchors: Mapping[str, str]

    @property
    def capacity(self) -> Capacity:
        """The free capacity."""
        return self.world.capacity(self.pool)

    @property
    def over_quota(self) -> bool:
        """Whether the gang would exceed the limit of its pool."""
        limit = self.pool.gpus.limit
        wanted = sum(task.shape.gpus for task in self.gang.all_tasks() if task.name not in self.anchors)
        return limit is not None and self.world.gpus(self.pool.name) + wanted > limit

    def placement(self) -> Found | NoPlacement:
        """Return where the gang fits now."""
        return place(self.gang, self.capacity, anchors=self.anchors, budget=QUEUE_BUDGET)

    def refusal(self) -> tuple[str, str] | None:
        """Return the reason why the gang is proved not to fit now, and its words; None where it may fit."""
        empty = self.world.empty(self.pool)
        decision = decide(self.gang, self.capacity, empty, anchors=self.anchors, budget=QUEUE_BUDGET)
        if decision.refusal is None or decision.verdict not in _REFUSED:
            return None
        return refusal_words(decision.refusal, self.gang, self.pool, self.capacity.domains)

    def together(self) -> tuple[str, ...]:
        """Return all tasks of the smallest groups, each in one domain, that have tasks which do not run yet."""
        found: set[str] = set()
        for task in self.gang.all_tasks():
            if task.name not in self.anchors:
                required = (group for group in self.gang.walk() if group.required)
                around = [[each.name for each in group.all_tasks()] for group in required]
                smallest: list[str] = min((names for names in around if task.name in names), key=len, default=[])
                found.update(smallest)
        return tuple(sorted(found))


def refusal_words(refusal: Refusal, gang: Gang, pool: Pool, domains: Domains) -> tuple[str, str]:
    """Return the reason of a refusal, and its words."""
    said = refusals.message(refusal, gang, domains.topology, domains.cluster, pool.node_selector)
    return refusal.reason.value, said
