"""The service without HTTP, as the API and the command line call it.

Methods read the store, write submissions and user requests, and wake the driver; only the driver changes states. They
may be called from any thread, and raise only `CoterieError`s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from coterie.errors import CoterieError
from coterie.lifecycle import TaskState
from coterie.service.core import Json
from coterie.service.driver.election.ownership import unregister
from coterie.service.pool_operations import PoolOperations
from coterie.service.pools.history import UsageRecorder
from coterie.service.settings import Settings
from coterie.service.views import workflows as views
from coterie.service.workflow_operations import WorkflowOperations


class Service(WorkflowOperations, PoolOperations):
    """Pools and workflows on one store."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._thread: threading.Thread | None = None
        self._recorder = UsageRecorder(self.store, self._now, settings.now, lambda: self._driver.leading)

    def start(self) -> None:
        """Start driving workflows, once this replica leads."""
        self._thread = threading.Thread(target=self._driver.run, name="coterie-driver", daemon=True)
        self._thread.start()
        self._recorder.start()

    def stop(self) -> None:
        """Stop driving, and close the store; tasks keep running, and the next start finds them."""
        if self._stopped:
            return
        self._stopped = True
        self._processes.close()
        self._recorder.stop()
        self._driver.stop()
        if self._thread is not None:
            self._thread.join()
        self._catalogue.live.close()
        with suppress(CoterieError):
            unregister(self.store, self.settings.holder)
        self.store.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def log(self, ident: str, task: str, attempt: int | None = None, offset: int = 0, limit: int = 1 << 16) -> bytes:
        """Return a part of a task's log; empty where there is no more yet."""
        return self._logs.read(self.store.workflow(ident), task, attempt, offset, limit)

    def log_start(self, ident: str, task: str, attempt: int | None, tail: int | None, since: float | None) -> int:
        """Return the offset of the last `tail` lines of a log, and of those that were written since a time."""
        return self._logs.start(self.store.workflow(ident), task, attempt, tail, since)

    def log_end(self, ident: str, task: str, attempt: int | None, limit: int) -> bytes:
        """Return the last lines of a task's log, as many as fit in a number of bytes."""
        return self._logs.end(self.store.workflow(ident), task, attempt, limit)

    def log_ends(
        self, ident: str, most: int, each: int, chosen: Callable[[TaskState], bool]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the ends of chosen started tasks' logs, with their names; all of it within `most` bytes."""
        return self._logs.ends(self.store.workflow(ident), most, each, chosen)

    def log_ended(self, ident: str, task: str, attempt: int | None = None) -> bool:
        """Return whether a task will write nothing more."""
        return self._logs.ended(self.store.workflow(ident), task, attempt)

    def health(self) -> Json:
        """Return whether the service can do its work, and its problems."""
        try:
            leader = self.store.leader()
            store, holder = "ok", leader.holder if leader and leader.expires_at > self.settings.now() else ""
        except CoterieError as error:
            store, holder = str(error), ""
        running, waiting = self._driver.load
        return {
            "ready": store == "ok" and bool(holder) and not self._driver.failing,
            "leader": self._driver.leading,
            "holder": holder,
            "store": store,
            "problems": [
                {"since": views.when(each.since), "what": each.what, "message": each.message}
                for each in self._problems.all()
            ],
            "running": running,
            "waiting": waiting,
        }
