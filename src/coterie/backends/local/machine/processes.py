"""Processes of this machine, as the kernel reports them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache

from coterie.backends.local.shim import ownership

MARK = "COTERIE_MARK"

_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of a process, distinct from a later one with the same number."""

    pid: int
    started: str
    boot: str

    @staticmethod
    def of(words: Collection[str]) -> ProcessIdentity | None:
        """Return an identity from its text; None for an invalid text."""
        match list(words):
            case [pid, started, boot, *_] if pid.isdigit():
                return ProcessIdentity(int(pid), started, boot)
        return None

    def this_boot(self) -> bool:
        """Return whether the machine has been up ever since."""
        return self.boot == _this_boot()

    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self.this_boot() and ownership.started(self.pid) == self.started

    def handle(self) -> int | None:
        """Open the process, if it still runs; the handle is ready for reading when it ends."""
        if not self.alive():
            return None
        try:
            found = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.alive():
            return found
        os.close(found)
        return None


@cache
def _this_boot() -> str:
    """Return the id of this boot, which is the same as long as this process lives."""
    return ownership.boot()


def marks() -> Iterator[tuple[int, str]]:
    """Yield each process that belongs to an attempt, with the attempt's mark, as far as this user may see it."""
    start = f"{MARK}=".encode()
    for pid in _numbers():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - thousands of times, so without a Path
                entries = file.read().split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(start):
                yield pid, entry.removeprefix(start).decode("utf-8", "replace")
                break


def end(belongs: Callable[[str], bool], sessions: Collection[ProcessIdentity] = ()) -> int:
    """End every process with a matching mark, and those of these sessions; return how many remain.

    Nothing else is touched. Several rounds may be needed, since a process can start others until it ends.
    """
    deadline = time.monotonic() + _PATIENCE_S
    pause = 0.001
    while True:
        found = {pid for pid, mark in marks() if belongs(mark)}
        found |= set(_of_sessions([each for each in sessions if each.this_boot()]))
        found = {pid for pid in found if ownership.started(pid) is not None}
        if not found or time.monotonic() > deadline:
            return len(found)
        for pid in found:
            _kill(pid)
        time.sleep(pause)
        pause = min(pause * 2, 0.1)


def _of_sessions(leaders: Collection[ProcessIdentity]) -> Iterator[int]:
    # The number of a session is reused only when all its processes are gone.
    wanted = {each.pid for each in leaders if ownership.started(each.pid) in (None, each.started)}
    for pid in _numbers() if wanted else ():
        if (found := ownership.stat(pid)) and int(found[3]) in wanted:
            yield pid


def _numbers() -> Iterator[int]:
    me = os.getpid()
    names = os.listdir("/proc")  # noqa: PTH208 - names alone, of thousands
    return (pid for name in names if name.isdigit() and (pid := int(name)) != me)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Ended meanwhile, or another user's by now; the next round counts it if it still exists.
        return
