"""Gangs that wait in the queue of their own scheduler, as the engine sees them.

A scheduler with a queue of its own keeps a replacement waiting for as long as there is no place beside the running
tasks. Where the engine proves that there is none, those that must share a domain with it move as well, and then the
whole group. And such a scheduler may leave a gang
waiting that fits: where its pool allows it, the gang is pinned to the domains that the engine has found.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from coterie.lifecycle import Enqueue, GroupState, Observation, Refused, by_task, unscheduled
from coterie.placement.engine import Found
from coterie.service.driver.backend_queues import BackendQueues
from coterie.service.driver.handed_over.rescue import rescued, undone
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.texts import TextPending
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.queue.holdings import Key

# How often waiting gangs are looked at, and for how long at a time: each costs a search.
_PACE_S = 1.0
_LONGEST_S = 0.2
# How long a gang may lack a place before it moves: capacity that is just being returned is not shown yet.
_MOVE_S = 5.0


@dataclass(eq=False)
class HandedOverGangs:
    """The gangs of all backends whose schedulers have their own queues."""

    backends: BackendQueues
    table: WorkflowTable
    _due: float = 0.0
    # Since when a replacement or a pinned gang has no place, and since when a waiting gang has one.
    _since: dict[Key, float] = field(default_factory=dict)
    _looked: dict[Key, float] = field(default_factory=dict)

    def look(self, now: float) -> None:
        """Ask the engine about waiting gangs, those first that were asked about longest ago."""
        if now < self._due:
            return
        self._due = now + _PACE_S
        waiting = {
            (life.id, asked.group, asked.attempt): (life, group, asked) for life, group, asked in self._waiting()
        }
        self._since = {key: since for key, since in self._since.items() if key in waiting}
        self._looked = {key: at for key, at in self._looked.items() if key in waiting}
        until = time.monotonic() + _LONGEST_S
        for key in sorted(waiting, key=lambda key: self._looked.get(key, 0.0)):
            if time.monotonic() > until:
                return
            self._looked[key] = now
            life, group, asked = waiting[key]
            with self.table.apart(life.id), suppress(TextPending):
                if (told := self._answer(key, life, group, asked, now)) is not None:
                    life.pending.append(told)

    def _answer(
        self, key: Key, life: LiveWorkflow, group: GroupState, asked: Enqueue, now: float
    ) -> Observation | None:
        question = self.backends.question(life, asked, by_task(group.pins))
        if question is None:
            return None
        if asked.anchors:
            said = question.refusal()
            if not self._lasts(key, now, _MOVE_S, holds=said is not None) or said is None:
                return None
            return Refused(asked.group, asked.attempt, *said, together=question.together())
        found = question.placement()
        if group.pins:
            lost = not isinstance(found, Found) and found.proved
            return undone(asked) if self._lasts(key, now, _MOVE_S, holds=lost) else None
        after = question.pool.rescue_after
        if after is None or not isinstance(found, Found) or question.over_quota:
            self._since.pop(key, None)
            return None
        if not self._lasts(key, now, after, holds=True):
            return None
        # What this gang takes may be what others were to take: their time begins again.
        self._since.clear()
        return rescued(question, found, asked, now - (group.queued or now))

    def _lasts(self, key: Key, now: float, seconds: float, *, holds: bool) -> bool:
        """Return whether something holds, and has held for a time without a break."""
        if not holds:
            self._since.pop(key, None)
            return False
        return now - self._since.setdefault(key, now) >= seconds

    def _waiting(self) -> Iterator[tuple[LiveWorkflow, GroupState, Enqueue]]:
        for life in self.table:
            if not self.backends.hands_over(life):
                continue
            rescues = self.backends.rescues(life)
            for group in life.state.groups:
                for asked in unscheduled(group) if not group.status.final else ():
                    if asked.anchors or rescues or group.pins:
                        yield life, group, asked
