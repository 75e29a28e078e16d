"""Cancellation of work whose caller has left: long computations check for it at intervals, and stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coterie.errors import Unavailable

# How often long work asks, in seconds.
POLL_S = 0.1

_left: ContextVar[threading.Event | None] = ContextVar("left", default=None)


class Abandoned(Unavailable):
    """Raised in work whose caller has left and will not read the result."""

    def __init__(self) -> None:
        super().__init__("the caller has left", "Ask again.")


@contextmanager
def cancelled_by(left: threading.Event) -> Iterator[None]:
    """End the work of this context once the event is set."""
    token = _left.set(left)
    try:
        yield
    finally:
        _left.reset(token)


def check() -> None:
    """Raise `Abandoned` if the caller of the current work has left."""
    left = _left.get()
    if left is not None and left.is_set():
        raise Abandoned
