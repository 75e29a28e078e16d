"""Timing by the best of many runs, since other work on a machine only ever adds time."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def say(text: str) -> None:
    """Print the progress of the run to standard error, apart from the results."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def once(run: Callable[[], _Result]) -> tuple[float, _Result]:
    """Return the microseconds of one run, and its result."""
    started = time.perf_counter()
    result = run()
    return (time.perf_counter() - started) * 1e6, result


def best(run: Callable[[], object], seconds: float, *, least: int = 5) -> float:
    """Return the microseconds of the fastest run among all that start within the given time."""
    gc.collect()
    fastest = float("inf")
    runs = 0
    begun = time.perf_counter()
    while runs < least or time.perf_counter() - begun < seconds:
        fastest = min(fastest, once(run)[0])
        runs += 1
    return fastest
