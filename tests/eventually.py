"""The only way in which tests wait for a condition that no event announces."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Far longer than anything takes on a busy machine; a condition that holds ends the wait at once.
PATIENCE_S = 60.0
_PAUSE_S = 0.02


def eventually(
    condition: Callable[[], object],
    otherwise: str | Callable[[], object] = "the condition did not hold in time",
    patience_s: float = PATIENCE_S,
) -> None:
    """Return as soon as the condition holds; fail with what `otherwise` says once patience has run out."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, otherwise() if callable(otherwise) else otherwise
        threading.Event().wait(_PAUSE_S)
