"""Work orders for tests, and conditions on their outcome."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.base.settings import DriverSettings
from coterie.backends.local import temporary_tasks
from coterie.backends.local.machine import processes
from coterie.backends.local.output import LocalOutput
from coterie.backends.local.shim.ownership import stat
from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptKey, AttemptLost, AttemptRunning, Status, WorkOrder

PATIENCE_S = 60.0


@contextlib.contextmanager
def supervising(root: Path, **limits: Any) -> Iterator[Supervisor]:
    """Open a supervisor, and leave nothing running."""
    supervisor = Supervisor(root, ProcessLimits(**limits))
    try:
        yield supervisor
    finally:
        for workflow in {each.workflow for each in supervisor.statuses()}:
            supervisor.remove(workflow)
        supervisor.close()
        temporary_tasks.end_all(root)


def key(task: str = "t", attempt: int = 1, group: str = "g") -> AttemptKey:
    return AttemptKey("w-1", group, task, attempt)


def order(*command: str, task: str = "t", attempt: int = 1, **more: Any) -> WorkOrder:
    return WorkOrder(key(task, attempt), command, **more)


def shell(script: str, task: str = "t", **more: Any) -> WorkOrder:
    return order("sh", "-c", script, task=task, **more)


def reached(supervisor: Supervisor, which: AttemptKey, kinds: type[Status] | tuple[type[Status], ...]) -> Status:
    """Wait until a task is in one of these states, or over."""
    deadline = time.monotonic() + PATIENCE_S
    while not isinstance(found := supervisor.status(which), (kinds, AttemptEnded, AttemptLost)):
        assert time.monotonic() < deadline, f"{which.task} is still {found}"
        supervisor.wait(1.0)
    return found


def ended(supervisor: Supervisor, *orders: WorkOrder) -> list[AttemptEnded]:
    """Start orders together, wait for their ends, and return them."""
    supervisor.start(orders)
    found = [reached(supervisor, each.key, AttemptEnded) for each in orders]
    assert all(isinstance(each, AttemptEnded) for each in found), found
    return [each for each in found if isinstance(each, AttemptEnded)]


def running(supervisor: Supervisor, one: WorkOrder) -> int:
    """Start an order, wait until it runs, and return its process."""
    supervisor.start([one])
    found = reached(supervisor, one.key, AttemptRunning)
    assert isinstance(found, AttemptRunning), found
    return found.pid


def log(supervisor: Supervisor, task: str = "t") -> str:
    return piece(supervisor, key(task)).decode(errors="replace")


def piece(supervisor: Supervisor, which: AttemptKey, start: int = 0, size: int | None = None) -> bytes:
    """Return a piece of a log, as every replica reads it."""
    return output(supervisor).log(TaskAttempt(which.workflow, which.group, which.task, which.attempt), start, size)


def output(supervisor: Supervisor) -> LocalOutput:
    return LocalOutput(DriverSettings(supervisor._root))


def asleep(span: str) -> list[int]:
    """Return the processes that sleep for a span that nobody else sleeps for, whatever their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{span}\0".encode():
                found.append(int(path.parent.name))
    return found


def left(root: Path) -> list[int]:
    """Return the processes that belong to a root."""
    mark = (root / ".mark").read_text()
    return [pid for pid, found in processes.marks() if found.startswith(f"{mark}/")]


def children(parent: int) -> set[int]:
    """Return the processes that a process has started, those that ended and nobody took leave of among them."""
    names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names alone
    return {int(name) for name in names if (found := stat(int(name))) and found[1] == str(parent)}
