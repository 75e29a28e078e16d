"""Retries with jitter and backoff, honouring the server's Retry-After, within a time limit.

Every call of this package may be repeated: reads change nothing, apply is declarative, a deletion names exactly one
object, and a repeated creation or replacement ends in a conflict.
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

# The largest jitter of a delay, as a share of it.
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The number of attempts of a call, and the time limit for all of them together."""

    attempts: int = 5
    total_s: float = 20.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 5.0


class Transient(Exception):  # noqa: N818 - not an error yet: it becomes one when patience ends
    """A failure that may be temporary; `error` is raised if it persists, `after_s` is the delay the server requests."""

    def __init__(self, error: CoterieError, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


def with_retries(patience: RetryLimits, call: Callable[[], T], clock: Callable[[], float] = time.monotonic) -> T:
    """Return the result of `call`, retrying on `Transient`; raise its error when the retries are used up."""
    end = clock() + patience.total_s

    def wait(failure: Exception) -> bool | float:
        if not isinstance(failure, Transient):
            return False
        if failure.after_s is None:
            return True
        # A server that requests a longer delay than the remaining time gets no further call.
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


def jittered(wait_s: float) -> float:
    """Return a delay with random jitter added, so that many clients do not return at the same moment."""
    return wait_s * (1 + _JITTER * random.random())  # noqa: S311 - spreads clients, guards nothing


def backoff(failures: int, first_s: float, longest_s: float) -> float:
    """Return the delay after some failures in a row: exponential, capped, and spread over its second half."""
    wait = min(longest_s, first_s * float(1 << min(failures - 1, 30)))
    return wait * (0.5 + random.random() / 2)  # noqa: S311 - spreads clients, guards nothing
