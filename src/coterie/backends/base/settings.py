"""Settings of a service that drivers depend on, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_LOG = 8 << 20
DEFAULT_GRACE_S = 30.0
# A watcher takes about a megabyte. This limits the effect of a mistake, not of normal work.
DEFAULT_PROCESSES = 256


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Settings of one driver.

    `folder` is the one in which tasks run on this machine; `context` and `namespace` are those of the backend. `store`
    identifies the service's store, whose objects in a cluster carry it.
    """

    folder: Path
    processes: int = DEFAULT_PROCESSES
    log_bytes: int = DEFAULT_LOG
    context: str | None = None
    namespace: str | None = None
    store: str = ""
