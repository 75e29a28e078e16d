"""Labs that outlive the command that starts them must not outlive the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Ends all labs of a state folder when the other end of its standard input is closed. Where that was not foretold, the
# tests were killed, and a command that they had started may be about to start another lab.
_GUARD = """
import sys, time
told = sys.stdin.read()
from lab.state import all_records
for _ in range(1 if told else 60):
    for record in all_records():
        record.end()
    time.sleep(0 if told else 0.5)
"""


@contextmanager
def guarded(state: Path) -> Iterator[None]:
    """End the labs of a state folder with the block, or with this process, however that comes about."""
    with subprocess.Popen(
        [sys.executable, "-c", _GUARD],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdin=subprocess.PIPE,
        # Whoever reads what the tests say must not have to wait for the guard.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as guard:
        try:
            yield
        finally:
            guard.communicate("done")
    assert guard.returncode == 0
