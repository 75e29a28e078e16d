"""Limits that keep a gang waiting although nodes are free: the quota of its pool, and the tasks of this machine."""

from __future__ import annotations

from collections.abc import Callable

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

    def crowded(self, gang: QueuedGang) -> Decision | None:
        """Return the refusal of a gang for which too many tasks run on this machine."""
        if not self.crowd(gang):
            return None
        refusal = Refusal(Reason.NO_CAPACITY, wanted=gang.size, running=self._running())
        return Decision(Verdict.WAITING, refusal=refusal)

    def crowd(self, gang: QueuedGang) -> bool:
        """Return whether too many tasks run on this machine for a gang."""
        # Tasks that join running ones had a process before; if they were refused for want of one, their whole gang
        # would have to move.
        used, most = self._running()
        return used + gang.size > most and bool(used) and not gang.entry.anchors

    def hinder(self, gang: QueuedGang) -> bool:
        """Return whether a limit keeps a gang waiting."""
        return self.crowd(gang) or self.over_quota(gang) is not None
