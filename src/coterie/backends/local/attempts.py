"""Attempts and their supervising processes, with the status of each determined from its folder."""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coterie.backends.local import attempt_folder as folders
from coterie.backends.local.machine import processes
from coterie.backends.local.shim import cgroup, ownership
from coterie.backends.local.shim_launcher import ForkServer, ShimProcess
from coterie.backends.local.work_order import (
    AttemptEnded,
    AttemptKey,
    AttemptLost,
    AttemptRunning,
    AttemptStarting,
    Status,
)

_TRIES = 3
_HIDDEN = "; without a control group, processes that left its session and cleared their environment were not found"
# Temporary errors: too many processes or handles, or too little memory at the moment.
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


@dataclass(slots=True, eq=False)
class Attempt:
    """The known status of one attempt; an `unsure` one has lost its watcher, and its end is not determined yet."""

    key: AttemptKey
    folder: Path
    record: folders.AttemptRecord
    status: Status = field(default_factory=AttemptStarting)
    watcher: ShimProcess | None = None
    unsure: bool = False
    tries: int = 0

    @property
    def over(self) -> bool:
        """Whether its status is final."""
        return isinstance(self.status, AttemptEnded | AttemptLost)

    @property
    def waiting(self) -> bool:
        """Whether it has not begun, and no process is about to begin it."""
        return self.watcher is None and not self.over and not self.unsure


class AttemptTable:
    """The attempts below a root; each status is true as of the last call of `note`."""

    def __init__(self, root: Path, mark: str) -> None:
        self._root, self._mark = root, mark
        self.attempts: dict[AttemptKey, Attempt] = {}
        self._watched: dict[int, Attempt] = {}
        self._unsure: dict[Attempt, int | None] = {}
        self._strays: list[ShimProcess] = []
        self._fork_server = ForkServer()
        self.epoll = select.epoll()

    @property
    def running(self) -> int:
        """The number of attempts with a running process."""
        return len(self._watched)

    @property
    def beginning(self) -> list[Attempt]:
        """The attempts with a process whose command does not run yet."""
        return [each for each in self._watched.values() if isinstance(each.status, AttemptStarting)]

    def mark(self, key: AttemptKey) -> str:
        """Return the mark of an attempt's processes in their environment."""
        return f"{self._mark}/{key.path}"

    def mark_of(self, workflow: str) -> str:
        """Return the beginning of the marks of a workflow's attempts."""
        return f"{self._mark}/{workflow}/"

    def add(self, attempt: Attempt, *, new: bool) -> None:
        """Add an attempt; unless it is new, the next `note` determines its status."""
        self.attempts[attempt.key] = attempt
        if not new and not attempt.over:
            self._doubt(attempt)

    def note(self) -> list[Attempt]:
        """Update all statuses; return the attempts whose status changed."""
        self._strays = [stray for stray in self._strays if not _gone(stray)]
        for handle, _ in self.epoll.poll(0):
            if handle in self._watched:
                self._doubt(self._watched[handle])
        before = {each: each.status for each in (*self._unsure, *self.beginning)}
        asked = set(self._unsure)
        self._settle()
        for each in self.beginning:
            if found := folders.command_of(each.folder):
                each.status = AttemptRunning(found[0].pid, found[1])
        return [each for each, status in before.items() if each.status != status or (each in asked and each.waiting)]

    def launch(self, attempt: Attempt) -> str:
        """Begin an attempt; return the temporary error that prevents it, or nothing."""
        try:
            self._watch(attempt, self._fork_server.launch(attempt.folder))
        except OSError as error:
            if error.errno in _PASSING:
                return error.strerror or str(error)
            self.withdraw(attempt, f"the process that watches it could not be started: {error.strerror}")
        attempt.tries += 1
        return ""

    def stop(self, attempt: Attempt, grace_s: float | None) -> None:
        """Request the end of an attempt; one that has not begun never will."""
        if attempt.over:
            return
        if folders.withdraw(attempt.folder):
            if attempt.watcher:
                self._strays.append(self._unwatch(attempt.watcher))
            attempt.watcher = None
            self._unsure.pop(attempt, None)
            attempt.unsure = False
            attempt.status = folders.ended_unstarted(attempt.folder)
            return
        if attempt.watcher is None:
            # Another supervisor began or removed it.
            self._doubt(attempt)
            self._settle()
        if attempt.watcher is not None:
            if grace_s is not None:
                # Where there is no space for the file, the signal alone is used, with the grace period of the order.
                with contextlib.suppress(OSError):
                    _put(attempt.folder / "stop", f"{grace_s:.3f}")
            attempt.watcher.stop(now=grace_s == 0)

    def discard(self, attempts: Sequence[Attempt]) -> None:
        """End attempts and forget them; their folders stay."""
        for each in attempts:
            self.stop(each, 0.0)
        for each in attempts:
            if each.watcher:
                each.watcher.await_end()
                _gone(self._unwatch(each.watcher))
            self._unsure.pop(each, None)
            self.attempts.pop(each.key, None)

    def close(self) -> None:
        """Release all process handles; the processes keep running."""
        for watcher in [*self._strays, *(each.watcher for each in self._watched.values() if each.watcher)]:
            watcher.close()
        self._watched.clear()
        self._fork_server.close()
        self.epoll.close()

    def _watch(self, attempt: Attempt, watcher: ShimProcess) -> None:
        attempt.watcher = watcher
        self._watched[watcher.handle] = attempt
        self.epoll.register(watcher.handle, select.EPOLLIN)

    def _unwatch(self, watcher: ShimProcess) -> ShimProcess:
        del self._watched[watcher.handle]
        self.epoll.unregister(watcher.handle)
        return watcher

    def _doubt(self, attempt: Attempt) -> None:
        code = None
        if attempt.watcher:
            code = self._unwatch(attempt.watcher).code()
            attempt.watcher.close()
            attempt.watcher = None
        attempt.unsure = True
        self._unsure.setdefault(attempt, code)

    def _settle(self) -> None:
        """Determine the status of attempts without a watcher; failures are retried by the next call."""
        lost: dict[Attempt, str] = {}
        for each, code in list(self._unsure.items()):
            holder, handle, end = None, None, folders.end_of(each.folder)
            if end is None:
                # First the holder, then the end again: the holder may end in between, but not the other way round.
                holder = folders.holder_of(each.folder)
                handle = holder.handle() if isinstance(holder, processes.ProcessIdentity) else None
                end = folders.end_of(each.folder)
            if end is not None:
                each.status = end
                if handle is not None:
                    self._strays.append(ShimProcess(handle))
            elif handle is not None:
                self._watch(each, ShimProcess(handle))
                if (each.folder / "stop").exists():
                    ShimProcess(handle).stop(now=False)
            elif holder == ownership.WITHDRAWN:
                each.status = folders.ended_unstarted(each.folder)
            elif damage := folders.damage_of(each.folder):
                lost[each] = damage
            elif isinstance(holder, processes.ProcessIdentity):
                lost[each] = _why_lost(holder, code)
            elif why := self._why_never(each, code):
                lost[each] = why
            each.unsure = each in lost
            if not each.unsure:
                del self._unsure[each]
        self.lose(lost)

    def _why_never(self, attempt: Attempt, code: int | None) -> str:
        """Return why an unclaimed attempt will never begin; empty when it only waits."""
        if not attempt.folder.exists():
            return "its folder was removed"
        if code is None or (code <= 0 and attempt.tries < _TRIES):
            return ""
        words = os.strerror(code) if code > 0 else f"it ended {attempt.tries} times without starting"
        if not folders.withdraw(attempt.folder) and folders.holder_of(attempt.folder) is not None:
            return ""
        return f"the process that watches it could not start: {words}"

    def withdraw(self, attempt: Attempt, why: str) -> None:
        """Mark an attempt as lost before it began, unless another process began it first."""
        if folders.withdraw(attempt.folder):
            self.lose({attempt: why})
        else:
            self._doubt(attempt)

    def lose(self, lost: Mapping[Attempt, str]) -> None:
        """Record attempts as lost, for these reasons, after the end of all their processes."""
        if not lost:
            return
        marks = {self.mark(each.key) for each in lost}
        commands = {each: found[0] for each in lost if (found := folders.command_of(each.folder))}
        left = processes.end(marks.__contains__, list(commands.values()))
        groups = {each: cgroup.of(str(each.folder)) for each in lost}
        left += sum(cgroup.end(path) for path in groups.values() if path)
        for each, why in lost.items():
            words = why + (f"; {left} {'process' if left == 1 else 'processes'} could not be stopped" if left else "")
            # Nothing survives a restart of the machine, in a control group or not.
            if not groups[each] and each in commands and commands[each].this_boot():
                words += _HIDDEN
            # On a full disk the next supervisor determines this again.
            with contextlib.suppress(OSError):
                _put(each.folder / "lost", words)
            each.status = AttemptLost(words)
            each.unsure = False
            self._unsure.pop(each, None)


def _gone(watcher: ShimProcess) -> bool:
    """Return whether a process has ended, and release it if so."""
    if not watcher.ended():
        return False
    watcher.close()
    return True


def _put(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    ownership.write(str(draft), text.encode())
    draft.rename(path)


def _why_lost(holder: processes.ProcessIdentity, code: int | None) -> str:
    if not holder.this_boot():
        return "the machine was restarted while it ran"
    if code and code > 0:
        return f"its result could not be recorded: {os.strerror(code)}"
    return "the process that watched it was killed"
