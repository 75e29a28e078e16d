"""The times at which something of a driven workflow expires."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from coterie.lifecycle import deadline
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow


class Deadlines:
    """The next deadline of each workflow, soonest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._current: dict[str, float] = {}

    @property
    def soonest(self) -> float | None:
        """The next time at which there may be a deadline."""
        return self._heap[0][0] if self._heap else None

    def schedule(self, life: LiveWorkflow) -> None:
        """Take the deadline of a workflow from its state."""
        at = deadline(life.spec, life.state)
        if at is None:
            self.drop(life.id)
        elif self._current.get(life.id) != at:
            self._current[life.id] = at
            heapq.heappush(self._heap, (at, life.id))

    def drop(self, workflow: str) -> None:
        """Drop the deadline of a workflow."""
        self._current.pop(workflow, None)

    def due(self, now: float) -> Iterator[str]:
        """Yield the workflows whose deadlines have passed, each once."""
        while self._heap and self._heap[0][0] <= now:
            at, workflow = heapq.heappop(self._heap)
            if self._current.get(workflow) == at:
                del self._current[workflow]
                yield workflow
