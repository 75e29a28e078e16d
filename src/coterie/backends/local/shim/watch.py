# ruff: noqa: PTH104, PTH108, PTH110 - a shim starts without pathlib, which takes longer than all the rest
"""One command, from its start to the end of all its descendants."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
import warnings  # noqa: F401 - os.execvpe imports it, under an account that may not read Python's library
from collections.abc import Callable

from . import cgroup
from .exit import end_all, exit_code, reap, send, send_group, unstartable
from .log import Log
from .ownership import CHUNK, EXIT_SIZE, claim, identity, keeper, read, room, write, write_exit

_SUBREAPER, _DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 36, 1, 38
# Timeouts have an upper limit; once an hour is often enough to check the clock.
_LONGEST_MS = 3_600_000


class Launch:
    """The content of the file `launch`: numbers, then words, each ended by a zero byte."""

    def __init__(self, data: bytes) -> None:
        numbers, _, rest = data.partition(b"\n")
        limit, grace, timeout, stamps, count, account = numbers.split()
        self.account = None if account == b"-" else int(account)
        words = [os.fsdecode(word) for word in rest.split(b"\0")[:-1]]
        self.log_bytes, self.stamps = int(limit), stamps == b"1"
        self.grace_s = float(grace)
        self.timeout_s = None if timeout == b"-" else float(timeout)
        self.words = words[: int(count)]
        pairs = (word.partition("=") for word in words[int(count) :])
        self.environment = {name: value for name, _, value in pairs}


class Watch:
    """One command from its start to the end of all its descendants."""

    def __init__(self, folder: str, launch: Launch, prctl: Callable[[int, int], None]) -> None:
        self._folder, self._launch, self._prctl = folder, launch, prctl
        self._keeper = keeper(folder)
        self._signals: set[int] = set()
        self._why = "exited"
        self._group: str | None = None
        self._kill_at: float | None = None
        # Signals also write to a pipe, so that one between two calls wakes the next.
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(number, lambda number, _: self._signals.add(number))

    def run(self) -> None:
        """Run the command and record its exit code."""
        log = Log(f"{self._folder}/log", self._launch.log_bytes, stamps=self._launch.stamps)
        if os.path.exists(f"{self._folder}/stop"):
            write_exit(self._folder, 128 + signal.SIGTERM, "stopped")
            return
        self._group = cgroup.make(self._folder)
        pid, output = self._start()
        status = self._follow(pid, output, log)
        left = end_all(pid)
        if self._group:
            left += cgroup.end(self._group)
        self._drain(output, log)
        if self._why == "timeout":
            log.say(f"stopped: it ran longer than {self._launch.timeout_s:g} s")
        log.close()
        unstopped = f"{left} {'process' if left == 1 else 'processes'} could not be stopped" if left else ""
        notes = [log.incomplete, unstopped]
        write_exit(self._folder, exit_code(status), self._why, "; ".join(note for note in notes if note))

    def _start(self) -> tuple[int, int]:
        """Start the command; it waits until its process number is recorded, so that it can always be found again."""
        output, into = os.pipe2(os.O_CLOEXEC)
        ready, go = os.pipe2(os.O_CLOEXEC)
        shim = os.getpid()
        # A signal that arrives before the child has executed the command must not run our handlers in it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pid = os.fork()
        if pid == 0:
            try:
                _forget_signals(mask)
                if self._group:
                    cgroup.enter(self._group)
                if self._launch.account is not None:
                    self._leave_account(self._launch.account)
                # After the change of the account, which would undo it.
                self._prctl(_DEATH_SIGNAL, signal.SIGKILL)
                os.setsid()
                os.close(go)
                if os.read(ready, 1) and os.getppid() == shim:
                    self._become(into)
            finally:
                os._exit(126)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        now = f"{identity(pid)} {time.time():.3f}".encode()
        write(f"{self._folder}/pid.new", now, room(self._folder, "pid"))
        os.rename(f"{self._folder}/pid.new", f"{self._folder}/pid")
        os.write(go, b"!")
        for handle in (ready, go, into):
            os.close(handle)
        return pid, output

    def _leave_account(self, account: int) -> None:
        """Continue under the account of the task, with no way back."""
        os.setgroups([])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
        self._prctl(_NO_NEW_PRIVILEGES, 1)

    def _become(self, into: int) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (into, 1), (into, 2)):
            os.dup2(source, target)
        words = self._launch.words
        try:
            os.chdir(f"{self._folder}/work")
            os.execvpe(words[0], words, self._launch.environment)  # noqa: S606 - no shell is what is wanted
        except (OSError, ValueError) as error:
            code, text = unstartable(words[0], error)
            os.write(2, f"[coterie: {text}; exit code {code}]\n".encode("utf-8", "surrogateescape"))
            os._exit(code)

    def _follow(self, pid: int, output: int, log: Log) -> int:
        """Copy output into the log until the command ends, and end it when it must."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(output, select.POLLIN)
        if self._keeper is not None:
            poll.register(self._keeper, select.POLLIN)
        timeout_s = self._launch.timeout_s
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            times = [at for at in (ends_at, self._kill_at) if at is not None]
            wait_ms = min(max(0, (min(times) - time.monotonic()) * 1000 + 1), _LONGEST_MS) if times else None
            for handle, _ in poll.poll(wait_ms):
                if handle == self._woken:
                    os.read(self._woken, CHUNK)
                elif handle == self._keeper:
                    poll.unregister(handle)
                    self._stop(pid, "stopped", self._launch.grace_s)
                elif data := os.read(output, CHUNK):
                    log.write(data)
                else:
                    poll.unregister(output)
            if (status := reap(pid)) is not None:
                return status
            now = time.monotonic()
            if asked := self._asked():
                self._stop(pid, *asked)
            if ends_at is not None and now >= ends_at:
                ends_at = None
                self._stop(pid, "timeout", self._launch.grace_s)
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                send(-pid, signal.SIGKILL)
                send(pid, signal.SIGKILL)

    def _asked(self) -> tuple[str, float] | None:
        """Return why and how soon the command is to end, if a signal requested it."""
        found, self._signals = self._signals - {signal.SIGCHLD}, set()
        if not found:
            return None
        if signal.SIGUSR1 in found:
            return "stopped", 0.0
        try:
            return "stopped", float(read(f"{self._folder}/stop"))
        except (OSError, ValueError):
            return "stopped", self._launch.grace_s

    def _stop(self, pid: int, why: str, grace_s: float) -> None:
        if self._why == "exited":
            self._why = why
        at = time.monotonic() + grace_s
        self._kill_at = at if self._kill_at is None else min(at, self._kill_at)
        # A stopped process receives no signals until it continues.
        for number in (signal.SIGTERM, signal.SIGCONT):
            send_group(pid, number)

    @staticmethod
    def _drain(output: int, log: Log) -> None:
        """Read the remaining output. All writers are dead, unless one of them passed its handle to another process."""
        os.set_blocking(output, False)
        try:
            while data := os.read(output, CHUNK):
                log.write(data)
        except BlockingIOError:
            log.say("another process still holds the output open; the log ends here")


def _forget_signals(mask: set[int | signal.Signals]) -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _prctl() -> Callable[[int, int], None]:
    call = ctypes.CDLL(None, use_errno=True).prctl

    def prctl(option: int, value: int) -> None:
        if call(option, ctypes.c_ulong(value), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")

    return prctl


def main(folder: str) -> int:
    """Supervise the attempt of a folder, unless it is claimed; return 0, or the error that kept it from beginning."""
    try:
        prctl = _prctl()
        prctl(_SUBREAPER, 1)
        watch = Watch(folder, Launch(read(f"{folder}/launch")), prctl)
        # The space for the result is reserved before the start: a disk that fills up meanwhile cannot prevent its
        # recording.
        reserved = f"{folder}/exit.{os.getpid()}"
        write(reserved, b" " * EXIT_SIZE, room(folder, "exit"))
        if claim(folder, f"shim {identity(os.getpid())}"):
            os.rename(reserved, f"{folder}/exit.new")
            watch.run()
        else:
            os.unlink(reserved)
    except FileNotFoundError:
        # The attempt was deleted before it began.
        return 0
    except OSError as error:
        return error.errno or 1
    return 0
