"""Namespaces that the processes of one node share, and that end with the first of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.process import Program, started_at
from lab.realnodes.requirements import program

# Folders that containerd, kubelet and network plugins write to, whatever they are told: each node has its own, and they
# are gone with it.
_OWN_FOLDERS = ("/run/containerd", "/var/lib/cni", "/var/log")
# Paths of sockets may have a hundred characters only, and the folder of a lab may have more.
KUBELET_FOLDER = "/var/lib/kubelet"
_PATIENCE = 60.0
# The first process of a namespace inherits the orphans of all others.
_FIRST = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags):
    os.makedirs(target, exist_ok=True)
    if libc.mount(source.encode(), target.encode(), kind, flags, None):
        sys.exit(f"cannot mount {target}: {os.strerror(ctypes.get_errno())}")
MS_BIND = 4096
mount(sys.argv[2], sys.argv[3], None, MS_BIND)
for path in sys.argv[4:]:
    mount("tmpfs", path, b"tmpfs", 0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
open(sys.argv[1], "w").close()
while True:
    signal.pause()
"""


@dataclass(slots=True)
class Namespaces:
    """The process and mount namespaces of a node; `holder` keeps them, and ends all in them when it ends."""

    holder: Program
    _mark: Path
    _first: int = 0

    def open(self, run: Callable[[Program], None]) -> None:
        """Start the holder by `run`, and return when programs can be started inside."""
        self._mark.unlink(missing_ok=True)
        run(self.holder)
        deadline = time.monotonic() + _PATIENCE
        while not self._mark.exists():
            if not self.holder.running or time.monotonic() > deadline:
                raise LabError(f"{self.holder.name} has no namespaces: {self.holder.tail(3) or 'no output'}")
            time.sleep(0.01)
        self._first = _first_of(self.holder.pid)

    def close(self) -> None:
        """End every process inside, and return when they are gone."""
        first, self._first = self._first, 0
        with _end_awaited(first, self.holder.name):
            self.holder.stop()

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one inside."""
        return [str(program("nsenter")), f"--target={self._first}", "--mount", "--pid", "--", *command]


def await_end(holder: int, name: str) -> AbstractContextManager[None]:
    """Leave a block that ends the holder of namespaces once every process inside of them is gone."""
    return _end_awaited(_first_of(holder), name)


@contextmanager
def _end_awaited(first: int, name: str) -> Iterator[None]:
    mark = started_at(first) if first else None
    yield
    deadline = time.monotonic() + _PATIENCE
    while mark is not None and started_at(first) == mark:
        if time.monotonic() > deadline:
            raise LabError(f"process {first} of {name} does not end", "Look at it with ps.")
        time.sleep(0.01)


def _first_of(holder: int) -> int:
    """Return the first process inside the namespaces that a process holds; 0 when there is none."""
    try:
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text("ascii").split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def namespaces(name: str, folder: Path, logs: Path, *, tied: bool) -> Namespaces:
    """Prepare the namespaces of a node; nothing is started."""
    mark, kubelet = folder / "namespaces-ready", folder / "kubelet"
    kubelet.mkdir(exist_ok=True)
    command = [
        str(program("unshare")),
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        "--mount-proc",
        *(sys.executable, "-I", "-S", "-c", _FIRST, str(mark), str(kubelet), KUBELET_FOLDER),
        *_OWN_FOLDERS,
    ]
    return Namespaces(Program(f"node-{name}", command, logs / f"node-{name}.log", tied=tied), mark)
