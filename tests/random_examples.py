"""The number of random examples of a property: all of them in a whole run, a share in the quick one."""

from __future__ import annotations

import os

# Set by `tests.slow` before test modules are imported, in every process of a run that leaves out slow tests.
QUICK = "COTERIE_QUICK_TESTS"

_SHARE = 5
_LEAST = 10


def examples(whole: int) -> int:
    """Return how many examples to draw where a whole run draws `whole`."""
    return max(_LEAST, whole // _SHARE) if os.environ.get(QUICK) and whole > _LEAST else whole
