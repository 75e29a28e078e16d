# ruff: noqa: PTH102, PTH106, PTH110, PTH112, PTH208 - a shim starts without pathlib, which takes longer than all the rest
"""The control group of an attempt: no process leaves it, whatever it does to its session and its environment."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

from .ownership import boot, identity, read, write

FILE = "cgroup"

_MOUNT = "/sys/fs/cgroup"
_PATIENCE_S = 5.0


def make(folder: str) -> str | None:
    """Create the control group of an attempt below that of this process, and record it; None where that is refused."""
    pid, started, _ = identity(os.getpid()).split()
    for parent in _parents():
        path = f"{parent}/coterie-{pid}-{started}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            write(f"{folder}/{FILE}", f"{boot()} {path}".encode())
        except OSError:
            os.rmdir(path)
            return None
        return path
    return None


def enter(path: str) -> None:
    """Move this process into a control group."""
    handle = os.open(f"{path}/cgroup.procs", os.O_WRONLY)
    try:
        os.write(handle, b"0")
    finally:
        os.close(handle)


def of(folder: str) -> str | None:
    """Return the control group of an attempt; None where it never had one, or the machine was restarted."""
    try:
        since, path = read(f"{folder}/{FILE}").decode().split(" ", 1)
    except (OSError, ValueError):
        return None
    ours = path.startswith(f"{_MOUNT}/") and path.rpartition("/")[2].startswith("coterie-")
    return path if ours and since == boot() else None


def end(path: str) -> int:
    """End every process of a control group, and remove it; return how many processes remain."""
    deadline = time.monotonic() + _PATIENCE_S
    pause = 0.001
    while True:
        left = list(_members(path))
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        if (not left and _removed(path)) or time.monotonic() > deadline:
            return len(left)
        time.sleep(pause)
        pause = min(pause * 2, 0.1)


def _parents() -> Iterator[str]:
    """Yield the folders of this process's control groups: of version 2 where it is the only one, else of version 1."""
    try:
        lines = read("/proc/self/cgroup").decode().splitlines()
    except OSError:
        return
    known = {names or number: path.rstrip("/") for number, names, path in (line.split(":", 2) for line in lines)}
    if os.path.exists(f"{_MOUNT}/cgroup.controllers"):
        mounts = {"0": _MOUNT}
    else:
        mounts = {"freezer": f"{_MOUNT}/freezer", "name=systemd": f"{_MOUNT}/systemd", "0": f"{_MOUNT}/unified"}
    for name, mount in mounts.items():
        if name in known:
            yield f"{mount}{known[name]}"


def _members(path: str) -> Iterator[int]:
    """Yield the processes of a control group and of those below it."""
    try:
        for name in os.listdir(path):
            if os.path.isdir(f"{path}/{name}"):
                yield from _members(f"{path}/{name}")
        # A process of another namespace is shown as 0, which would mean this one's whole group to `kill`.
        yield from (pid for pid in map(int, read(f"{path}/cgroup.procs").split()) if pid > 0)
    except FileNotFoundError:
        return


def _removed(path: str) -> bool:
    try:
        for name in os.listdir(path):
            if os.path.isdir(f"{path}/{name}"):
                _removed(f"{path}/{name}")
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
