"""The supervisor: runs orders as processes, a bounded number at a time, and always knows their status.

All state is on the disk (`attempt_folder`), and every task has a process that supervises it (`shim`), so this process
may end at any moment, even by `kill -9`: the next supervisor of the same root continues. Waiting attempts keep their
order, running ones are found again, and ended ones have left their exit code. An attempt is lost only when its shim
itself is killed, or the machine goes down; then nothing of it is left running.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coterie.backends.base.settings import DEFAULT_PROCESSES
from coterie.backends.local import attempt_folder as folders
from coterie.backends.local.attempts import Attempt, AttemptTable
from coterie.backends.local.container_paths import check_root
from coterie.backends.local.files.trash import TrashCollector
from coterie.backends.local.machine import open_files, processes
from coterie.backends.local.machine.limits import too_many
from coterie.backends.local.start_order import StartOrder, Together
from coterie.backends.local.work_order import AttemptAbsent, AttemptKey, AttemptLost, Status, WorkOrder, order_faults
from coterie.errors import Unavailable, UsageError

_POLL_S = 0.05
_LONGEST_S = 3600.0
# How long some of the attempts that start together may run without the others, which cannot begin at the moment.
_PATIENCE_S = 10.0
_INHERITED = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "LD_LIBRARY_PATH")

_PERSONAL = ("HOME", "USER", "LOGNAME", "SHELL")


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The number of commands at a time, and the variables of this process they see (besides those named `LC_…`)."""

    processes: int = DEFAULT_PROCESSES
    inherited: tuple[str, ...] = _INHERITED


class Supervisor:
    """The attempts below one root: their start, supervision and end. Its methods may be called from any thread."""

    def __init__(self, root: Path, limits: ProcessLimits | None = None, *, accounts: bool = False) -> None:
        if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
            raise Unavailable("tasks can run as processes only on Linux", "Choose a pool with another backend.")
        self._root = root.resolve()
        check_root(self._root)
        self._limits = limits or ProcessLimits()
        self._lock = threading.RLock()
        self._start_order = StartOrder()
        self._changed = False
        self._held_up = ""
        self._apart: dict[Together, float] = {}
        self._trash = TrashCollector(self._root)
        with self._words("open the folder of tasks"):
            folders.make_root(self._root, entered=accounts)
            folders.show_ended(self._root)
            folders.prune(self._root)
            self._table = AttemptTable(self._root, folders.mark_of(self._root))
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._table.epoll.register(self._bell, select.EPOLLIN)
            try:
                self._last_number = self._read()
            except OSError:
                # A caller that retries must not run out of handles.
                self.close()
                raise

    def start(self, orders: Sequence[WorkOrder]) -> None:
        """Accept orders, which then start together or not at all; already accepted ones are left unchanged.

        They begin when all of them fit, in the order of the calls; more than may ever run at a time are refused. When
        this returns, they are on the disk and survive this process.
        """
        faults = [(order.key, *fault) for order in orders for fault in order_faults(order)]
        if faults:
            key, message, hint, _ = faults[0]
            raise UsageError(f'task "{key.task}": {message}', hint)
        names = ", ".join(f'"{order.key.task}"' for order in orders[:3])
        with self._lock, self._words(f"start {names}"):
            new = any(order.key not in self._table.attempts for order in orders)
            if new and (found := too_many(len(orders), self._limits.processes)):
                raise UsageError(f"{len(orders)} tasks are to start together, and {found[0]}", found[1])
            self._last_number += 1
            record = folders.AttemptRecord(tuple(dict.fromkeys(order.key for order in orders)), self._last_number)
            for workflow in {order.key.workflow for order in orders}:
                self._bring_back(workflow)
            try:
                for order in orders:
                    self._accept(order, record)
            except OSError:
                # The attempts accepted by this call are removed again: none starts without the others.
                mine = [key for key, found in self._table.attempts.items() if found.record is record]
                self._forget(mine, {self._table.mark(key) for key in mine}.__contains__)
                folders.remove(self._root, [self._root / key.path for key in mine])
                self._trash.wake()
                raise
            self._advance()

    def status(self, key: AttemptKey) -> Status:
        """Return the status of an attempt."""
        with self._lock, self._words("watch tasks"):
            self._advance()
            found = self._table.attempts.get(key)
            return found.status if found else AttemptAbsent()

    @property
    def problem(self) -> str:
        """The reason why due tasks cannot start, as a sentence; empty when they can."""
        with self._lock:
            return self._held_up

    def statuses(self, wanted: Collection[AttemptKey] | None = None) -> dict[AttemptKey, Status]:
        """Return the status of every known attempt, or of the wanted ones among them."""
        with self._lock, self._words("watch tasks"):
            self._advance()
            known = self._table.attempts
            return {key: known[key].status for key in (known if wanted is None else wanted) if key in known}

    def wait(self, timeout_s: float) -> bool:
        """Sleep until a status differs from the last call; return whether that was in time.

        One thread waits, and changes found by others wake it. Nothing begins unless some method is called.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock, self._words("watch tasks"):
                self._advance()
                if self._changed:
                    self._changed = False
                    return True
                soon = bool(self._table.beginning)
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._table.epoll.poll(min(left, _POLL_S if soon else _LONGEST_S))
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._bell)

    def stop(self, key: AttemptKey, grace_s: float | None = None) -> None:
        """Request the end of an attempt, and kill it after the grace period; return at once.

        One that has not begun never will, nor will those that were to start with it and have not begun either.
        """
        with self._lock, self._words(f'stop task "{key.task}"'):
            self._advance()
            if found := self._table.attempts.get(key):
                self._stop(found, grace_s)
                self._advance()

    def kill(self, key: AttemptKey) -> None:
        """Kill an attempt without a grace period; return at once."""
        self.stop(key, 0.0)

    def archive(self, workflow: str) -> None:
        """Archive a workflow: keep its data on the disk, and nothing of it in memory; nothing of it may run.

        Its attempts are absent from now on, and their folders are found under the same paths. They return with the next
        order of the same workflow.
        """
        with self._lock, self._words("archive tasks"):
            self._advance()
            mine = [each for each in self._table.attempts.values() if each.key.workflow == workflow]
            if all(each.over for each in mine):
                folders.archive(self._root, workflow)
                self._table.discard(mine)

    def archived(self) -> set[str]:
        """Return the archived workflows."""
        with self._words("look for archived tasks"):
            return folders.ended(self._root)

    def remove(self, workflow: str) -> None:
        """End all running attempts of a workflow, and remove all its data."""
        with self._lock, self._words("remove tasks"):
            mine = [key for key in self._table.attempts if key.workflow == workflow]
            # Of an archived one, nothing runs, so its attempts need not be read.
            self._forget(mine, lambda mark: mark.startswith(self._table.mark_of(workflow)))
            folders.remove_workflow(self._root, workflow)
            self._trash.wake()
            self._advance()

    def close(self) -> None:
        """Release all resources; running attempts continue, and the next supervisor of the root finds them.

        No thread may be in another method, and none is called after this.
        """
        self._trash.close()
        with self._lock:
            self._table.close()
            os.close(self._bell)

    def _bring_back(self, workflow: str) -> None:
        if folders.restore(self._root, workflow):
            self._read(workflow)

    def _read(self, workflow: str = "[!.]*") -> int:
        """Read the attempts below the root; return the last number of the start order."""
        found = [(key, path, folders.record_of(path)) for key, path in folders.folders(self._root, workflow)]
        damaged = {}
        for key, path, record in sorted(found, key=lambda each: each[2].turn if each[2] else 0):
            attempt = Attempt(key, path, record or folders.AttemptRecord((key,), 0))
            if record is None and (end := folders.end_of(path)):
                attempt.status = end
            elif record is None:
                damaged[attempt] = folders.damage_of(path) or "its folder is damaged"
                attempt.status = AttemptLost(damaged[attempt])
            self._table.add(attempt, new=False)
        self._table.lose(damaged)
        self._advance()
        return max((record.turn for _, _, record in found if record), default=0)

    def _accept(self, order: WorkOrder, record: folders.AttemptRecord) -> None:
        key = order.key
        if key in self._table.attempts:
            return
        path = self._root / key.path
        new = folders.make(self._root, order, record, self._surroundings(order, path))
        attempt = Attempt(key, path, record if new else folders.record_of(path) or record)
        # Where the folder already existed, another supervisor of this root was first.
        self._table.add(attempt, new=new)
        if attempt.waiting:
            self._start_order.add(key, attempt.record.together)

    def _surroundings(self, order: WorkOrder, path: Path) -> folders.AttemptEnvironment:
        inherited = self._limits.inherited
        common = {name: value for name, value in os.environ.items() if name in inherited or name.startswith("LC_")}
        if order.account is not None:
            # The service's home is closed to it, and it has no name.
            common = {name: value for name, value in common.items() if name not in _PERSONAL}
            common["HOME"] = str(path / "work")
        fixed = {
            processes.MARK: self._table.mark(order.key),
            "COTERIE_OUTPUT": str(path / "output"),
            "COTERIE_FILES": str(path / "files"),
        }
        return folders.AttemptEnvironment({**common, "TMPDIR": str(path / "tmp")}, fixed)

    def _advance(self) -> None:
        """Update all statuses, and begin the attempts that fit."""
        for each in self._table.note():
            self._changed = True
            if each.waiting:
                self._withdraw_or_wait(each)
        self._begin()
        if self._changed:
            os.eventfd_write(self._bell, 1)

    def _begin(self) -> None:
        table, most = self._table, self._limits.processes
        self._held_up = ""
        while ready := self._start_order.next(table.running, most, table.attempts.__contains__):
            company = [table.attempts[key] for key in ready]
            if not open_files.enough_for(len(company), alone=not table.running):
                self._hold_up(company, "there are too few file handles")
                return
            for number, attempt in enumerate(company):
                if why := table.launch(attempt):
                    self._hold_up(company[number:], why)
                    return
                self._start_order.drop(attempt.key, attempt.record.together)
                self._changed |= attempt.over
            self._apart.pop(company[0].record.together, None)

    def _hold_up(self, left: Sequence[Attempt], why: str) -> None:
        """Report why due tasks cannot start; if some of their set have begun without them, end those."""
        names = ", ".join(each.key.path for each in left[:3]) + (", …" if len(left) > 3 else "")
        files = f"at most {open_files.limit():,} files are open at a time, {open_files.PER_TASK} of them for each task"
        self._held_up = f"{len(left)} {'task' if len(left) == 1 else 'tasks'} cannot start ({names}): {why}; {files}"
        together = left[0].record.together
        if len(left) == len(together):
            return
        now = time.monotonic()
        if now - self._apart.setdefault(together, now) < _PATIENCE_S:
            return
        del self._apart[together]
        for each in left:
            self._table.withdraw(each, f"it could not start together with the others: {why}")
        for each in (self._table.attempts[key] for key in together if key in self._table.attempts):
            self._table.stop(each, 0.0)
            self._start_order.drop(each.key, together)
        self._changed = True

    def _withdraw_or_wait(self, attempt: Attempt) -> None:
        """Let an unclaimed attempt wait, unless one that it was to start with was withdrawn."""
        together = attempt.record.together
        if any(folders.holder_of(self._root / key.path) == folders.WITHDRAWN for key in together):
            self._table.stop(attempt, None)
        elif attempt.tries:
            self._start_order.again(attempt.key, together)
        else:
            self._start_order.add(attempt.key, together)

    def _stop(self, attempt: Attempt, grace_s: float | None) -> None:
        known = self._table.attempts
        company = [known[key] for key in attempt.record.together if key in known] if attempt.waiting else []
        for each in [attempt, *(other for other in company if other.waiting)]:
            self._table.stop(each, grace_s)
            self._start_order.drop(each.key, each.record.together)
            self._changed |= each.over

    def _forget(self, keys: Sequence[AttemptKey], marked: Callable[[str], bool]) -> None:
        """End attempts, and all processes with their marks, and forget them; their folders stay."""
        found = [self._table.attempts[key] for key in keys if key in self._table.attempts]
        for each in found:
            self._stop(each, 0.0)
        self._table.discard(found)
        processes.end(marked)

    @contextlib.contextmanager
    def _words(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                # The folder is part of the message, because the health of the service shows no hints.
                full = f'cannot {action}: the disk is full, there is no room in the folder "{self._root}"'
                raise Unavailable(full, "Make room on its disk; Coterie keeps trying until there is some.") from error
            hint = f'Look at the folder "{self._root}": it needs room, and must belong to the user who runs Coterie.'
            raise Unavailable(f"cannot {action}: {error.strerror or error}", hint) from error
