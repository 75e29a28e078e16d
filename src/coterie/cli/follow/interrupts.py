"""Interrupts that wait until a call has ended which must not end in its middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone interrupts until the end of the block.

    Between the acquisition of a lock and the block that releases it, an exception would leave it locked for ever.
    """
    missed: list[tuple[int, FrameType | None]] = []
    handlers = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}  # interrupts reach the main thread only
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: missed.append((number, frame)))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if missed:
        first, frame = missed[0]
        handlers[signal.Signals(first)](first, frame)
