"""A budget of steps: the same input gives the same answer on every machine, however fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

DEFAULT_BUDGET = 400_000

# Choosing a domain costs about as much time as this many patterns of the packing search.
CHOICE = 10


class Exhausted(Exception):  # noqa: N818 - it says what happened to the budget; it is caught, never shown
    """Raised when the steps are used up before the answer is known."""


class Budget:
    """Counts the steps of one question."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.spent = 0

    @property
    def left(self) -> int:
        """How many steps there are still."""
        return max(0, self.steps - self.spent)

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise `Exhausted` when there are no more."""
        self.spent += steps
        if self.spent > self.steps:
            raise Exhausted

    @contextmanager
    def at_most(self, steps: int) -> Iterator[None]:
        """Lend only so many steps to what is asked inside."""
        whole = self.steps
        self.steps = min(whole, self.spent + steps)
        try:
            yield
        finally:
            self.steps = whole

    @contextmanager
    def apart(self, steps: int) -> Iterator[None]:
        """Give so many steps to what is asked inside, on top of all others: they are not counted."""
        whole, spent = self.steps, self.spent
        self.steps = spent + steps
        try:
            yield
        finally:
            self.steps, self.spent = whole, spent
