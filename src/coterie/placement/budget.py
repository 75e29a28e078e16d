"""A budget of steps, so that the same input gives the same answer on machines of any speed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

DEFAULT_BUDGET = 400_000

# Choosing a domain takes about as much time as this many patterns of the packing search.
CHOICE = 10


class Exhausted(Exception):  # noqa: N818 - it says what happened to the budget; it is caught, never shown
    """Raised when the steps are used up before the answer is known."""


class Budget:
    """The step counter of one search."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.spent = 0

    @property
    def left(self) -> int:
        """The number of steps left."""
        return max(0, self.steps - self.spent)

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise `Exhausted` when there are no more."""
        self.spent += steps
        if self.spent > self.steps:
            raise Exhausted

    @contextmanager
    def at_most(self, steps: int) -> Iterator[None]:
        """Limit the enclosed search to a number of steps."""
        whole = self.steps
        self.steps = min(whole, self.spent + steps)
        try:
            yield
        finally:
            self.steps = whole

    @contextmanager
    def apart(self, steps: int) -> Iterator[None]:
        """Grant the enclosed search a number of extra steps, which are not counted."""
        whole, spent = self.steps, self.spent
        self.steps = spent + steps
        try:
            yield
        finally:
            self.steps, self.spent = whole, spent
