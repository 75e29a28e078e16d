"""Trying again: with jitter, honouring what the server asks for, and not longer than it is worth.

Every call of this package may be repeated: reads change nothing, apply says what should be, and a deletion names the
one object it means.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina

from coterie.errors import CoterieError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, and how long all tries may take together."""

    attempts: int = 5
    total_s: float = 20.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 5.0


class Transient(Exception):  # noqa: N818 - not an error yet: it becomes one when patience ends
    """A failure that may pass; `error` is what it is when it does not, `after_s` the wait that the server asks for."""

    def __init__(self, error: CoterieError, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


def patiently(patience: Patience, call: Callable[[], T], clock: Callable[[], float] = time.monotonic) -> T:
    """Return what `call` returns, trying again on `Transient`; raise its error when patience ends."""
    end = clock() + patience.total_s

    def wait(failure: Exception) -> bool | float:
        if not isinstance(failure, Transient):
            return False
        if failure.after_s is None:
            return True
        # A server that asks for more time than there is gets no further call.
        return jittered(failure.after_s) if clock() + failure.after_s <= end else False

    try:
        for attempt in stamina.retry_context(
            on=wait,
            attempts=patience.attempts,
            timeout=patience.total_s,
            wait_initial=patience.first_wait_s,
            wait_max=patience.longest_wait_s,
            wait_jitter=patience.first_wait_s,
        ):
            with attempt:
                return call()
    except Transient as failure:
        raise failure.error from None
    raise AssertionError("the last attempt returns or raises")


def jittered(wait_s: float, share: float = 0.1) -> float:
    """Return a little more than a wait, so that many clients do not come back at once."""
    return wait_s * (1 + share * random.random())  # noqa: S311 - spreads clients, guards nothing


def backoff(failures: int, first_s: float, longest_s: float) -> float:
    """Return how long to wait after so many failures in a row: doubling, capped, and spread over its second half."""
    wait = min(longest_s, first_s * float(1 << min(failures - 1, 30)))
    return wait * (0.5 + random.random() / 2)  # noqa: S311 - spreads clients, guards nothing
