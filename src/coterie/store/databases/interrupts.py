"""Interrupts that wait until an access to the database has ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# The one of a user comes last: no exception of its handler keeps the others from being restored.
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone interrupts until the end of the block.

    Ctrl-C raises an exception in the main thread at any moment, also between the acquisition of a lock and the block
    that would release it. All other threads would then wait for that lock for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    missed: list[tuple[int, FrameType | None]] = []
    handlers = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: missed.append((number, frame)))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if missed:  # also after an error of the block, which its caller may suppress
            first, frame = missed[0]
            handlers[signal.Signals(first)](first, frame)
