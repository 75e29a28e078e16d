"""Control groups of version 1: one folder for each node in every hierarchy."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lab.errors import LabError

_PATIENCE = 60.0


def hierarchies(*kinds: str) -> list[Path]:
    """Return the mount points of hierarchies: by default those of version 1, of which a machine may have none."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text("utf-8").splitlines())
    return sorted({Path(fields[1]) for fields in mounts if fields[2] in (kinds or ("cgroup",))})


def create(name: str) -> None:
    """Create a group in every hierarchy, with all CPUs and memory nodes of the machine."""
    for root in hierarchies():
        folder = root / name
        folder.mkdir(exist_ok=True)
        # A new group of this hierarchy takes no process before it is told which CPUs it may use.
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (folder / file).exists():
                (folder / file).write_text((root / file).read_text("ascii"), "ascii")


def groups(prefix: str) -> list[Path]:
    """Return the folders of all groups whose names begin with a prefix, those inside of others first."""
    return [
        Path(folder)
        # Beside version 1, runc makes empty groups of version 2 as well.
        for root in hierarchies("cgroup", "cgroup2")
        for top in root.glob(f"{prefix}*")
        for folder, _, _ in os.walk(top, topdown=False)
    ]


def remove(prefix: str) -> None:
    """Remove all groups whose names begin with a prefix; processes in them are killed."""
    deadline = time.monotonic() + _PATIENCE
    while found := groups(prefix):
        for folder in found:
            _kill(_processes(folder))
            with suppress(OSError):
                folder.rmdir()
        if time.monotonic() > deadline:
            raise LabError(f"the control group {found[0]} cannot be removed", "Look at its processes: cgroup.procs.")
        time.sleep(0.01)


def _processes(folder: Path) -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in (folder / "cgroup.procs").read_text("ascii").split()]
    return []


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        # Zero is a process of another namespace.
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
