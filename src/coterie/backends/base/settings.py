"""Settings of a service that drivers depend on, and their defaults."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

DEFAULT_LOG = 8 << 20
# Of all tasks of a workflow, and of all workflows; those that have ended give way.
DEFAULT_WORKFLOW_LOGS = 1 << 30
DEFAULT_ALL_LOGS = 8 << 30
DEFAULT_GRACE_S = 30.0
DEFAULT_FORCE_S = 60.0
# A watcher takes about a megabyte. This limits the effect of a mistake, not of normal work.
DEFAULT_PROCESSES = 256


# User ids that no distribution and no container manager gives out.
DEFAULT_ACCOUNTS = range(1_900_000_000, 1_900_065_536)


@dataclass(frozen=True, slots=True)
class TaskAccounts:
    """The user ids that tasks run under, one for each owner; with a single id, the one of all.

    The tasks of the `exempt` owner run as the service does.
    """

    ids: range = DEFAULT_ACCOUNTS
    exempt: str | None = None


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Settings of one driver.

    `folder` is the one in which tasks run on this machine, under `accounts` of their own where there are some;
    `context` and `namespace` are those of the `backend`. `store` identifies the service's store, whose objects in a
    cluster carry it; `backends` are the names of all backends of the service, kept up to date. A pod on a failed node
    that is still there `force_s` after its grace period is deleted by force.
    """

    folder: Path
    processes: int = DEFAULT_PROCESSES
    log_bytes: int = DEFAULT_LOG
    context: str | None = None
    namespace: str | None = None
    store: str = ""
    accounts: TaskAccounts | None = None
    workflow_log_bytes: int = DEFAULT_WORKFLOW_LOGS
    all_log_bytes: int = DEFAULT_ALL_LOGS
    force_s: float = DEFAULT_FORCE_S
    backend: str = ""
    backends: Collection[str] = ()
