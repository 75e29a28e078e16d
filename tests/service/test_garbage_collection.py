"""The garbage collection of a service: what it keeps is not examined again and again."""

from __future__ import annotations

import subprocess
import sys

# The objects are kept, as workflows are: with the defaults of Python, all of them would be examined several times.
_SCRIPT = """\
import gc
from coterie.service.server import collect_rarely
collect_rarely()
before = gc.get_stats()[2]["collections"]
kept = [[number] for number in range(500_000)]
again = gc.get_stats()[2]["collections"] - before
print(again, gc.get_freeze_count() > 0, gc.isenabled())
"""


def test_kept_objects_are_rarely_examined() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "True", "True"]
