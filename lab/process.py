"""Programs of a lab: each a process group of its own, with a log file, that ends with the lab.

A program that is tied to its parent is ended by the kernel when the parent is gone, however that came about. The
kernel looks at the thread that started the program, so one thread that lives as long as the parent starts them all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError

# A program reacts to signals as usual, whatever this process was told to ignore (by nohup) and Python ignores itself.
# A tied one asks for SIGKILL at its parent's death (PR_SET_PDEATHSIG is 1), and looks whether it died before that.
_START = """
import ctypes, os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
if int(sys.argv[1]):
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-starter")


@dataclass(slots=True)
class Program:
    """A program of a lab: its command, and its process while it runs."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    tied: bool = True
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        if self.running:
            raise LabError(f"{self.name} runs already")
        self._process = _starter.submit(self._spawn).result()

    @property
    def pid(self) -> int:
        """The process id, which is the id of the process group as well; 0 before the start."""
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended(self) -> str | None:
        """The way in which the process ended by itself, in words; None while it runs or was not started."""
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"

    def stop(self) -> None:
        """End it and everything that it started, at once; do nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of its log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 200 * lines - 4096))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def _spawn(self) -> subprocess.Popen[bytes]:
        parent = os.getpid() if self.tied else 0
        command = [sys.executable, "-I", "-S", "-c", _START, str(parent), *self.command]
        with self.log.open("ab") as log:
            # S603: the commands are the lab's own.
            return subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_inherited(), **self.environment},
                cwd=self.folder or self.log.parent,
                start_new_session=True,
            )


def _inherited() -> dict[str, str]:
    """Return the environment without what would lead a program to another cluster, or through a proxy to this one."""
    unwanted = ("KUBE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(unwanted)}


def started_at(pid: int) -> str | None:
    """Return a mark of when a process began, which tells it from a later one with the same id; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def end_group(pid: int, mark: str, patience: float = 60.0) -> bool:
    """End the process group of a process that began at `mark`; return whether it was still there."""
    if started_at(pid) != mark:
        return False
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + patience
    while started_at(pid) == mark:
        if time.monotonic() > deadline:
            raise LabError(f"process {pid} does not end", "Look at it with ps; it may be stuck in the kernel.")
        time.sleep(0.01)
    return True
