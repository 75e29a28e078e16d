"""Shims, started and signalled by handles that can never refer to another process."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from coterie.backends.local.machine import open_files

# Imported, so that Python keeps it compiled; from beside this file and last, so that it shadows no other module.
_MAIN = "import sys; sys.path.append(sys.argv[1]); from shim.fork_server import main; main(*map(int, sys.argv[2:]))"
_PATIENCE_MS = 15_000


@dataclass(frozen=True, slots=True)
class ShimProcess:
    """A shim: its handle is ready for reading when it has ended, and `word` reports why it never began.

    One that was started by another supervisor has no `word`.
    """

    handle: int
    word: int | None = None

    def code(self) -> int | None:
        """Return how it ended: 0, the error that kept it from beginning, negative if it was killed; None if unknown."""
        if self.word is None:
            return None
        try:
            said = os.read(self.word, 16)
        except BlockingIOError:
            return None
        return int(said) if said else -signal.SIGKILL

    def ended(self, timeout_ms: int = 0) -> bool:
        """Return whether it has ended, within a time."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def stop(self, *, now: bool) -> None:
        """Tell it to stop its command, with grace or without; one that has ended is ignored."""
        self._send(signal.SIGUSR1 if now else signal.SIGTERM)

    def await_end(self) -> None:
        """Wait until it has ended, and kill it when that takes too long."""
        if not self.ended(_PATIENCE_MS):
            self._send(signal.SIGKILL)
            self.ended(_PATIENCE_MS)

    def close(self) -> None:
        """Release the handle; the shim keeps running."""
        os.close(self.handle)
        if self.word is not None:
            os.close(self.word)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)


class ForkServer:
    """The fork server of shims: one for all of them, started when first needed, and again if it dies.

    The shims are in their own sessions and have none of our secrets. They outlive it, as they outlive us.
    """

    def __init__(self) -> None:
        self._process: tuple[int, socket.socket] | None = None

    def launch(self, folder: Path) -> ShimProcess:
        """Start a shim for a folder; if one starts although this fails, it claims its attempt or finds it claimed."""
        ours, its = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            shim = self._ask(folder, its)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(its)
        return ShimProcess(shim, ours)

    def close(self) -> None:
        """End it; the shims keep running."""
        if self._process is None:
            return
        (pid, asked), self._process = self._process, None
        asked.close()
        handle = os.pidfd_open(pid)
        ShimProcess(handle).await_end()
        os.close(handle)
        os.waitpid(pid, 0)

    def _ask(self, folder: Path, word: int) -> int:
        for _ in range(2):
            _, asked = self._process = self._process or _begin()
            try:
                socket.send_fds(asked, [os.fsencode(folder)], [word])
                answer, shims, *_ = socket.recv_fds(asked, 16, 1)
            except (ConnectionError, TimeoutError):
                answer, shims = b"", []
            if shims:
                return shims[0]
            if answer:
                # A handle that was sent but did not arrive met the limit of open files.
                number = int(answer) or errno.EMFILE
                raise OSError(number, os.strerror(number))
            self.close()
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _begin() -> tuple[int, socket.socket]:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_PATIENCE_MS / 1000)
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    copies = [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2), (os.POSIX_SPAWN_DUP2, its.fileno(), 3)]
    with its:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _MAIN, str(Path(__file__).parent), "3", str(open_files.task_limit())],
            {},
            file_actions=[null, *copies],
            setsid=True,
            setsigmask=[],
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
    return pid, ours
