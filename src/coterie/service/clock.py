"""The clock of a service: it counts seconds that pass, so that a changed clock of the machine ends nobody's task."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from coterie.service.driver.election.replica import machine

_FILE = ".clock"
# A smaller difference is the usual correction of a clock that runs a little too fast or too slow.
_NOTABLE_S = 60.0


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Seconds since 1970 by the machine's clock when it was first read after boot, and by seconds passed from then on.

    The first reading is kept in a folder, so that a service that restarts counts on. After the next boot, or after
    `adjust`, the machine's clock counts again.
    """

    def __init__(
        self, folder: Path, wall: Callable[[], float] = time.time, passed: Callable[[], float] = _since_boot
    ) -> None:
        self._file, self._wall, self._passed = folder / _FILE, wall, passed
        self._boot = machine()
        known = self._known()
        self._offset = self._measured() if known is None else known
        if known is None:
            self._keep()

    def __call__(self) -> float:
        """Return the time."""
        return self._offset + self._passed()

    @property
    def ahead_s(self) -> float:
        """By how much the machine's clock was set forward since it was read; negative where it was set back."""
        found = self._measured() - self._offset
        return found if abs(found) >= _NOTABLE_S else 0.0

    def adjust(self) -> None:
        """Take over the time of the machine's clock; only where nothing waits or runs."""
        self._offset = self._measured()
        self._keep()

    def _measured(self) -> float:
        return self._wall() - self._passed()

    def _known(self) -> float | None:
        try:
            boot, offset = self._file.read_text(encoding="utf-8").split()
            return float(offset) if boot == self._boot else None
        except (OSError, ValueError):
            return None

    def _keep(self) -> None:
        # On a full disk the next start reads the machine's clock.
        with suppress(OSError):
            draft = self._file.with_name(f"{_FILE}.{os.getpid()}")
            draft.write_text(f"{self._boot} {self._offset!r}", encoding="utf-8")
            draft.replace(self._file)
