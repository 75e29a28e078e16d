"""A budget of steps: the same input gives the same answer on every machine, however fast it is."""

from __future__ import annotations

DEFAULT_BUDGET = 200_000


class Exhausted(Exception):  # noqa: N818 - it says what happened to the budget; it is caught, never shown
    """Raised when the steps are used up before the answer is known."""


class Budget:
    """Counts the steps of one question."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise `Exhausted` when there are no more."""
        self.spent += steps
        if self.spent > self.steps:
            raise Exhausted
