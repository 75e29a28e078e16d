"""A driver on its own thread, so that a slow or unreachable backend does not delay the others."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coterie.backends.base.driver import DrivenWorkflow, Driver, News, TaskPlacement
from coterie.errors import CoterieError, Unavailable
from coterie.lifecycle import Create, Delete, Go, Observation, Spec, State, Stop

_log = logging.getLogger("coterie.drivers")
_log.addHandler(logging.NullHandler())

# How long to wait before a failed call is repeated.
_PAUSE_S = 1.0
# The longest wait before a backend is opened, or its pools are reconciled, again: each failure doubles it.
_LONGEST_PAUSE_S = 30.0
# How long one collection of observations may take.
_WAIT_S = 0.2
# How long closing waits for a call that does not return.
_CLOSE_S = 1.0
# How often a call for a workflow may end with an unexpected error, before the workflow is given up.
_CRASHES = 3
# The queues of calls that concern no workflow; no workflow has such a name.
_NEWS, _SYNC, _STRAYS = _COMMON = "/news", "/sync", "/strays"

Told = Iterable[tuple[str, News]]


@dataclass(frozen=True, slots=True)
class _WorkflowSnapshot:
    """A workflow at the time of a request."""

    id: str
    pool: str
    owner: str
    spec: Spec
    state: State


@dataclass(frozen=True, slots=True)
class _DriverCall:
    """One call of the driver; another pending one with the same name is the same call."""

    name: str
    make: Callable[[Driver], Told | None]


@dataclass(eq=False)
class _CallQueue:
    """The calls for one workflow in their order, and when the first of them may be made."""

    calls: deque[_DriverCall]
    at: float = 0.0
    failed: str = ""
    failures: int = 0
    crashes: int = 0


class DriverThread:
    """A driver whose calls return at once: they are made in the background, and repeated until they succeed.

    Calls for one workflow keep their order; those for others overtake one that fails. A workflow whose calls end with
    unexpected errors again and again is given up. `poke` is called when there are observations, or other problems.
    """

    def __init__(self, open_driver: Callable[[], Driver], poke: Callable[[], None]) -> None:
        self._open_driver, self._poke = open_driver, poke
        self._driver: Driver | None = None
        self._condition = threading.Condition()
        self._lines: OrderedDict[str, _CallQueue] = OrderedDict()
        self._told: deque[tuple[str, News]] = deque()
        self._pools: list[Any] = []
        self._given_up: list[tuple[str, Exception]] = []
        self._unarchived: set[str] = set()
        self._archived: set[str] = set()
        self._problems: tuple[str, ...] = ()
        self._current: _DriverCall | None = None
        self._unopened = ""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="coterie-backend", daemon=True)
        self._thread.start()

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to, as far as it is known."""
        return self._driver.running if self._driver else 0

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of the driver when observations were collected last."""
        return self._problems

    def sync(self, pools: Collection[Any]) -> None:
        """Schedule the reconciliation of pools, at once where they differ from those of the last one."""
        wanted = list(pools)
        with self._condition:
            line = self._lines.get(_SYNC)
            if line is not None and wanted != self._pools:
                line.at, line.failures = 0.0, 0
            self._pools = wanted
        self._ask(_SYNC, "sync", lambda driver: driver.sync(wanted), latest=True)

    def create(
        self, workflow: DrivenWorkflow, asked: Create, seats: Mapping[str, TaskPlacement]
    ) -> tuple[Observation, ...]:
        """Schedule the creation of tasks; `news` reports the result."""
        now = _copy(workflow)
        self._ask(now.id, asked.id, lambda driver: _by(now, driver.create(now, asked, seats)))
        return ()

    def go(self, workflow: DrivenWorkflow, asked: Go) -> tuple[Observation, ...]:
        """Schedule the start of a task's command."""
        now = _copy(workflow)
        self._ask(now.id, asked.id, lambda driver: _by(now, driver.go(now, asked)))
        return ()

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        """Schedule the end of one task."""
        now = _copy(workflow)
        self._ask(now.id, asked.id, lambda driver: driver.stop(now, asked))

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        """Schedule the end and removal of a group."""
        now = _copy(workflow)
        self._ask(now.id, asked.id, lambda driver: driver.delete(now, asked))

    def adopt(self, workflow: DrivenWorkflow) -> None:
        """Schedule the adoption of a workflow's tasks."""
        now = _copy(workflow)
        self._ask(now.id, "adopt", lambda driver: driver.adopt(now))

    def release(self, workflow: str) -> None:
        """Drop all calls for a workflow, and stop following its tasks."""
        with self._condition:
            self._lines.pop(workflow, None)
        self._ask(workflow, "release", lambda driver: driver.release(workflow))

    def news(self) -> Iterator[tuple[str, News]]:
        """Yield the collected observations; then raise `Unavailable` if calls fail."""
        with self._condition:
            told = list(self._told)
            self._told.clear()
            failed = self._unopened or next((line.failed for line in self._lines.values() if line.failed), "")
        yield from told
        if failed:
            raise Unavailable(failed, "The service keeps trying; check the backend and its cluster.")

    def given_up(self) -> list[tuple[str, Exception]]:
        """Return the workflows that were given up since the last call, each with the error of its last call."""
        with self._condition:
            found, self._given_up = self._given_up, []
        return found

    def wait(self, timeout_s: float) -> bool:
        """Wait for the timeout: `poke` announces observations."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed, timeout_s)
        return False

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        """Schedule the end of stray tasks, and a listing of the remains of workflows."""
        now, apart = {name: _copy(one) for name, one in workflows.items()}, frozenset(spared)

        def make(driver: Driver) -> None:
            driver.end_strays(now, apart)
            self._unarchived, self._archived = driver.unarchived(), driver.archived()

        self._ask(_STRAYS, "end_strays", make, latest=True)

    def archive(self, workflow: str) -> None:
        """Schedule the archiving of a workflow."""
        self._ask(workflow, "archive", lambda driver: driver.archive(workflow))

    def unarchived(self) -> set[str]:
        """Return the workflows with remains at the last listing."""
        return self._unarchived

    def archived(self) -> set[str]:
        """Return the workflows that were archived at the last listing."""
        return self._archived

    def forget(self, workflow: str) -> None:
        """Schedule the removal of all remains of a workflow."""
        self._ask(workflow, "forget", lambda driver: driver.forget(workflow))

    def close(self) -> None:
        """Make no more calls, and close the driver once it is idle; a call that does not return is abandoned."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join(_CLOSE_S)

    def _ask(self, line: str, name: str, make: Callable[[Driver], Told | None], *, latest: bool = False) -> None:
        with self._condition:
            calls = self._lines.setdefault(line, _CallQueue(deque())).calls
            known = next((at for at, one in enumerate(calls) if one.name == name and one is not self._current), None)
            if known is None:
                calls.append(_DriverCall(name, make))
            elif latest:
                calls[known] = _DriverCall(name, make)
            self._condition.notify_all()

    def _run(self) -> None:
        failures = 0
        while self._driver is None and not self._closed:
            self._unopened = _words(self._failure(self._open))
            if self._unopened:
                self._poke()
                failures += 1
                with self._condition:
                    self._condition.wait_for(lambda: self._closed, _pause(failures))
        threading.Thread(target=self._listen, name="coterie-backend-news", daemon=True).start()
        while (driver := self._driver) is not None and (found := self._next()) is not None:
            name, line, call = found
            failed = self._failure(lambda driver=driver, call=call: self._make(driver, call))  # type: ignore[misc]
            with self._condition:
                self._done(name, line, call, failed)
            if failed:
                self._poke()
        if self._driver is not None:
            self._driver.close()

    def _listen(self) -> None:
        """Schedule a collection whenever the driver has observations."""
        while (driver := self._driver) is not None and not self._closed:
            failed = self._failure(lambda driver=driver: self._await(driver))  # type: ignore[misc]
            if failed:
                with self._condition:
                    self._condition.wait_for(lambda: self._closed, _PAUSE_S)

    def _await(self, driver: Driver) -> None:
        if driver.wait(_WAIT_S):
            self._ask(_NEWS, "news", self._collected)
            # Until they are collected, the driver still has them and would not wait.
            with self._condition:
                self._condition.wait_for(lambda: self._closed or _NEWS not in self._lines)

    def _collected(self, driver: Driver) -> Iterator[tuple[str, News]]:
        """Yield the observations of the driver; then note its problems, whether that succeeds or fails."""
        try:
            yield from driver.news()
        finally:
            before, self._problems = self._problems, tuple(driver.problems)
            if self._problems != before:
                self._poke()

    def _open(self) -> None:
        self._driver = self._open_driver()

    def _make(self, driver: Driver, call: _DriverCall) -> None:
        for told in call.make(driver) or ():
            with self._condition:
                self._told.append(told)
            self._poke()

    def _next(self) -> tuple[str, _CallQueue, _DriverCall] | None:
        """Wait for a call that may be made; None once this is closed."""
        with self._condition:
            while not self._closed:
                now = time.monotonic()
                for name, line in self._lines.items():
                    if line.at <= now:
                        self._current = line.calls[0]
                        return name, line, self._current
                soonest = min((line.at for line in self._lines.values()), default=None)
                self._condition.wait(None if soonest is None else soonest - now)
        return None

    def _done(self, name: str, line: _CallQueue, call: _DriverCall, failed: Exception | None) -> None:
        self._current = None
        line.failed = _words(failed)
        line.failures = line.failures + 1 if failed is not None else 0
        line.crashes = line.crashes + 1 if failed is not None and not isinstance(failed, CoterieError) else 0
        if failed is not None and line.crashes >= _CRASHES and name not in _COMMON:
            self._given_up.append((name, failed))
            if self._lines.get(name) is line:
                del self._lines[name]
        elif failed is not None:
            line.at = time.monotonic() + (_pause(line.failures) if name == _SYNC else _PAUSE_S)
            if self._lines.get(name) is line:
                self._lines.move_to_end(name)
        elif line.calls[0] is call:
            line.calls.popleft()
        if not line.calls and self._lines.get(name) is line:
            del self._lines[name]
            self._condition.notify_all()

    @staticmethod
    def _failure(do: Callable[[], None]) -> Exception | None:
        """Perform a call; return why it failed."""
        try:
            do()
        except CoterieError as error:
            return error
        except Exception as error:  # noqa: BLE001 - it is tried again, and told until it works
            _log.exception("unexpected error in a call of the driver")
            return error
        return None


def _pause(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return min(_LONGEST_PAUSE_S, _PAUSE_S * 2.0 ** min(failures - 1, 10))


def _words(error: Exception | None) -> str:
    if error is None or isinstance(error, CoterieError):
        return str(error or "")
    return f"unexpected {type(error).__name__}: {error}"


def _copy(workflow: DrivenWorkflow) -> _WorkflowSnapshot:
    return _WorkflowSnapshot(workflow.id, workflow.pool, workflow.owner, workflow.spec, workflow.state)


def _by(workflow: _WorkflowSnapshot, told: Iterable[Observation]) -> Iterator[tuple[str, Observation]]:
    return ((workflow.id, each) for each in told)
