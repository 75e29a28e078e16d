"""Gangs that wait in the queue of their own scheduler, as the engine sees them.

A scheduler with a queue of its own keeps a replacement waiting for as long as there is no place beside the running
tasks. Where the engine proves that there is none, the whole group has to move.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from coterie.lifecycle import Enqueue, Refused, unscheduled
from coterie.placement.refusal import Verdict
from coterie.service.driver.backend_queues import BackendQueues
from coterie.service.driver.driven_workflow import LiveWorkflow
from coterie.service.driver.texts import TextPending
from coterie.service.driver.workflow_table import WorkflowTable
from coterie.service.queue.holdings import Key

# How often waiting gangs are looked at: each costs a search.
_PACE_S = 1.0
# How long a replacement may lack a place before its group moves: capacity that is just being returned is not shown yet.
_MOVE_S = 5.0
_REFUSED = (Verdict.WAITING, Verdict.IMPOSSIBLE)


@dataclass(eq=False)
class HandedOverGangs:
    """The gangs of all backends whose schedulers have their own queues."""

    backends: BackendQueues
    table: WorkflowTable
    _due: float = 0.0
    _refused: dict[Key, float] = field(default_factory=dict)  # since when there is no place

    def look(self, now: float) -> None:
        """Refuse replacements that have no place beside the running tasks of their groups."""
        if now < self._due:
            return
        self._due = now + _PACE_S
        refused: dict[Key, float] = {}
        for life, asked in self._waiting():
            key = (life.id, asked.group, asked.attempt)
            with self.table.apart(life.id), suppress(TextPending):
                if asked.anchors and (said := self._refusal(life, asked)) is not None:
                    refused[key] = self._refused.get(key, now)
                    if now - refused[key] >= _MOVE_S:
                        life.pending.append(said)
        self._refused = refused

    def _refusal(self, life: LiveWorkflow, asked: Enqueue) -> Refused | None:
        answer = self.backends.judge(life, asked)
        if answer is None or answer.decision.verdict not in _REFUSED:
            return None
        return Refused(asked.group, asked.attempt, answer.reason, answer.message)

    def _waiting(self) -> Iterator[tuple[LiveWorkflow, Enqueue]]:
        for life in self.table:
            if self.backends.hands_over(life):
                for group in life.state.groups:
                    if not group.status.final:
                        yield from ((life, asked) for asked in unscheduled(group))
