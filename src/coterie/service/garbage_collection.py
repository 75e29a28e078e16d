"""The garbage collection of a service: rare, because nearly all its objects are freed without it."""

from __future__ import annotations

import gc

# How many objects are new before the youngest are examined, and after how many such rounds the older ones are. With the
# defaults of Python, a fifth of a busy service's processor time went into examining the workflows that it keeps, and
# every request waited meanwhile.
_THRESHOLDS = (10_000, 10, 50)


def collect_rarely() -> None:
    """Set up this process to collect garbage rarely, and never to examine what it has loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
