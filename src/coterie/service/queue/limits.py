"""Limits that keep a gang waiting although nodes are free: the quota of its pool, and the tasks of this machine."""

from __future__ import annotations

from collections.abc import Callable

from coterie.config.configuration import GpuQuota
from coterie.errors import Reason
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Refusal, Verdict
from coterie.service.queue.cycle import QueuedGang
from coterie.service.queue.holdings import BackendHoldings


class QueueLimits:
    """The limits of the gangs of one backend.

    `running` returns the number of tasks that run on the machine behind the nodes, and their limit.
    """

    def __init__(self, world: BackendHoldings, running: Callable[[], tuple[int, int]]) -> None:
        self._world, self._running = world, running

    def over_quota(self, gang: QueuedGang) -> Decision | None:
        """Return the refusal of a gang that exceeds the limit of its pool."""
        limit = gang.entry.pool.gpus.limit
        if limit is None:
            return None
        quota = Quota(self._world.gpus(gang.entry.pool.name) - gang.anchored, limit)
        return quota.refused(gang.order.gpus + gang.anchored, running=gang.anchored)

    def over_task_limit(self, gang: QueuedGang) -> Decision | None:
        """Return the refusal of a gang for which too many tasks run on this machine."""
        if not self.exceeds_task_limit(gang):
            return None
        refusal = Refusal(Reason.NO_CAPACITY, wanted=gang.size, running=self._running())
        return Decision(Verdict.WAITING, refusal=refusal)

    def exceeds_task_limit(self, gang: QueuedGang) -> bool:
        """Return whether too many tasks run on this machine for a gang."""
        # Tasks that join running ones had a process before; if they were refused for want of one, their whole gang
        # would have to move.
        used, most = self._running()
        return used + gang.size > most and bool(used) and not gang.entry.anchors

    def blocks(self, gang: QueuedGang) -> bool:
        """Return whether a limit keeps a gang waiting."""
        return self.exceeds_task_limit(gang) or self.over_quota(gang) is not None


class CycleLimits:
    """The limits of gangs during one cycle: placements only add to what runs, so a blocked kind stays blocked."""

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self._over_task_limit: set[int] = set()
        # Gangs of one kind may have different versions of their pool, with other limits.
        self._blocked: set[tuple[int, GpuQuota]] = set()

    def exceeds_task_limit(self, gang: QueuedGang) -> bool:
        """Return whether too many tasks run on this machine for a gang."""
        if gang.kind in self._over_task_limit:
            return True
        if self._limits.exceeds_task_limit(gang):
            self._over_task_limit.add(gang.kind)
            return True
        return False

    def blocks(self, gang: QueuedGang) -> bool:
        """Return whether a limit keeps a gang waiting."""
        kind = gang.kind, gang.entry.pool.gpus
        if kind in self._blocked:
            return True
        if self.exceeds_task_limit(gang) or self._limits.over_quota(gang) is not None:
            self._blocked.add(kind)
            return True
        return False
