"""The settings of a service, and the submission of a user."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.backends.base.settings import (
    DEFAULT_ALL_LOGS,
    DEFAULT_FORCE_S,
    DEFAULT_GRACE_S,
    DEFAULT_LOG,
    DEFAULT_PROCESSES,
    DEFAULT_WORKFLOW_LOGS,
    DriverSettings,
    TaskAccounts,
)
from coterie.service.driver.election.replica import new_holder

if TYPE_CHECKING:
    # A command that only talks to a service does not need these imports.
    from coterie.config.configuration import Backend, Config
    from coterie.frontends.template.render import RenderedText
    from coterie.planning.changes import WhatIf
    from coterie.sources import Snapshot

DEFAULT_FILES = 10 << 20
# The folder of a service in which its tasks run.
TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class GivenPools:
    """Backends and pools that come with the call instead of a configuration file, with the nodes of each backend."""

    config: Config
    clusters: Mapping[str, Snapshot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a service.

    `store` is the URL of the database, `state` the folder in which tasks run; replicas of one store share both. Pools
    come from `config`, a file, or from `given`; with neither there is one pool, which is this machine. `lease_s` is the
    expiry of a dead leader's lease, `patience_s` how long a gang may be overtaken in the queue, `poll_s` the interval
    of polling for unannounced changes. `node_grace_s` is how long a node may be unhealthy before its tasks are lost.
    `force_s` is how long after its grace period a pod on a failed node is deleted by force. `processes` limits how many
    tasks run at a time, `accounts` are those that tasks on this machine run under. A task has `log_bytes` of logs, all
    of a workflow have `workflow_log_bytes`, and ended workflows `all_log_bytes`.
    """

    store: str
    state: Path
    config: Path | None = None
    given: GivenPools | None = None
    holder: str = field(default_factory=new_holder)
    lease_s: float = 10.0
    patience_s: float = 60.0
    grace_s: float = DEFAULT_GRACE_S
    node_grace_s: float = 60.0
    force_s: float = DEFAULT_FORCE_S
    log_bytes: int = DEFAULT_LOG
    workflow_log_bytes: int = DEFAULT_WORKFLOW_LOGS
    all_log_bytes: int = DEFAULT_ALL_LOGS
    processes: int = DEFAULT_PROCESSES
    accounts: TaskAccounts | None = None
    files_limit: int = DEFAULT_FILES
    poll_s: float = 0.5
    max_reschedules: int = 3
    max_infrastructure_retries: int = 5
    now: Callable[[], float] = time.time

    @property
    def tasks(self) -> Path:
        """The folder in which tasks run."""
        return self.state / TASKS

    def for_driver(self, store: str, backend: Backend, backends: Collection[str] = ()) -> DriverSettings:
        """Return the settings of a driver of a store's workflows on a backend, one of `backends`."""
        return DriverSettings(
            self.tasks,
            self.processes,
            self.log_bytes,
            backend.context,
            backend.namespace,
            store,
            self.accounts,
            self.workflow_log_bytes,
            self.all_log_bytes,
            self.force_s,
            backend.name,
            backends,
        )


@dataclass(frozen=True, slots=True)
class Submission:
    """A workflow as a user submits it.

    `labels` are added to those of the file. `local_files` holds the bytes of every `localpath` that the file names.
    `client_key` is the user's own name for the request: the same key never makes a second workflow. `what_if` are the
    changes by options, `amendment` is their stored form. `rendered` is its rendered text, or the stored form of that,
    if it is known already.
    """

    source: bytes
    file: str = "workflow.yaml"
    pool: str | None = None
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    priority: str = "NORMAL"
    labels: Mapping[str, str] = field(default_factory=dict)
    local_files: Mapping[str, bytes] = field(default_factory=dict)
    client_key: str | None = None
    owner: str = "local"
    what_if: WhatIf | None = None
    amendment: Mapping[str, Any] | None = None
    rendered: RenderedText | Mapping[str, Any] | None = None
