"""Shims, started and signalled by handles that can never mean another process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from coterie.backends.local.processes import MARK

# Imported, so that Python keeps it compiled; from beside this file and last, so that it stands in nobody's way.
_MAIN = "import sys; sys.path.append(sys.argv[1]); from shim.watch import main; sys.exit(main(sys.argv[2]))"
_PATIENCE_MS = 15_000


@dataclass(frozen=True, slots=True)
class Watcher:
    """A shim: its handle is ready for reading when it has ended."""

    handle: int

    def reap(self) -> int | None:
        """Return how it ended, below zero for a signal; nothing while it runs, or when it is no child of ours."""
        try:
            found = os.waitid(os.P_PIDFD, self.handle, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return None
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def ended(self, timeout_ms: int = 0) -> bool:
        """Tell whether it has ended, within that time."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def stop(self, *, now: bool) -> None:
        """Tell it to stop its command, with grace or without; one that has ended does not mind."""
        self._send(signal.SIGUSR1 if now else signal.SIGTERM)

    def await_end(self) -> None:
        """Wait until it has ended, and make it end when that takes too long."""
        if not self.ended(_PATIENCE_MS):
            self._send(signal.SIGKILL)
            self.ended(_PATIENCE_MS)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)


def launch(folder: Path, mark: str) -> Watcher:
    """Start a shim for a folder, in a session of its own and with none of our secrets."""
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    copies = [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", _MAIN, str(Path(__file__).parent), str(folder)],
        {MARK: mark},
        file_actions=[null, *copies],
        setsid=True,
        setsigmask=[],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )
    try:
        return Watcher(os.pidfd_open(pid))
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
