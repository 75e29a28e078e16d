"""An operator as a process that kills itself at one of its writes: `python -m tests.operator.killed_operator N WHEN`.

WHEN is `before` or `after` the N-th write. Without a write of that number it runs until it is stopped.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from coterie.operator.election import LeaseTiming
from coterie.operator.operator import run
from coterie.operator.settings import OperatorSettings
from coterie.operator.writer import Writer

# Another operator need not wait long for a lease that nobody releases.
TIMING = LeaseTiming(duration_s=2.0, deadline_s=1.2, renew_s=0.3)
WRITES = ("create", "replace", "delete", "patch", "status", "event")
_lock = threading.Lock()
_count = 0


def main(number: int, when: str) -> None:
    """Run the operator."""
    for name in WRITES:
        setattr(Writer, name, _deadly(getattr(Writer, name), number, when))
    run(OperatorSettings(timing=TIMING, settle_s=0.2, absent_s=0.5))


def _deadly(write: Callable[..., Any], number: int, when: str) -> Callable[..., Any]:
    def written(*arguments: Any, **more: Any) -> Any:
        global _count  # noqa: PLW0603 - a count for the whole process
        # One write at a time, so that the number of a write has a meaning.
        with _lock:
            _count += 1
            if (_count, when) == (number, "before"):
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return write(*arguments, **more)
            finally:
                # A write that met a conflict, or a lease that was lost on a busy machine, counts as well.
                if _count == number:
                    os.kill(os.getpid(), signal.SIGKILL)

    return written


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
