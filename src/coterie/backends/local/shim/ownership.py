# ruff: noqa: PTH104, PTH108 - a shim starts without pathlib, which takes longer than all the rest
"""The ownership of an attempt, and its files; processes are identified so that none is mistaken for another."""

from __future__ import annotations

import errno
import os
import time

EXIT_SIZE = 512
# The files for which space is reserved from the beginning, and how much: a block of the disk, whatever its size.
ROOMS = ("claim", "pid", "exit")
ROOM_SIZE = 128
WITHDRAWN = "withdrawn"
# The file beside the workflows that names the process with which all of them end, if any.
KEEPER = ".keeper"
CHUNK = 1 << 16


def boot() -> str:
    """Return the unique id of this boot of the machine."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def stat(pid: int) -> list[str] | None:
    """Return the kernel's record of a process, from its state on; None when it is gone."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].decode().split()
    except OSError:
        return None


def started(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks: it distinguishes a reused number."""
    found = stat(pid)
    return None if found is None or found[0] in "ZX" else found[19]


def identity(pid: int) -> str:
    """Return the line that identifies a living process, now and after any restart."""
    return f"{pid} {started(pid)} {boot()}"


def keeper(folder: str) -> int | None:
    """Open the process that an attempt ends with; None where it outlives all others.

    Raises `ProcessLookupError` where that process is gone.
    """
    try:
        pid, since, _ = read(f"{folder.rsplit('/', 4)[0]}/{KEEPER}").decode().split()
    except FileNotFoundError:
        return None
    handle = os.pidfd_open(int(pid))
    if started(int(pid)) != since:
        os.close(handle)
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return handle


def claim(folder: str, holder: str) -> bool:
    """Claim an unclaimed attempt; return whether that worked. The content appears atomically."""
    mine = f"{folder}/claim.{os.getpid()}"
    write(mine, holder.encode(), room(folder, "claim"))
    try:
        os.link(mine, f"{folder}/claim")
    except FileExistsError:
        return False
    finally:
        os.unlink(mine)
    return True


def room(folder: str, name: str) -> str:
    """Return the placeholder file that reserves space for one of the `ROOMS`."""
    return f"{folder}/room.{name}"


def write(path: str, data: bytes, into: str = "") -> None:
    """Write a small file; into its reserved space where there is some, and so also on a full disk."""
    fresh = 0 if into and taken(into, path) else os.O_TRUNC
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | fresh, 0o644)
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def taken(kept: str, path: str) -> bool:
    """Rename reserved space to a file; return whether it still existed. Only one process can have it."""
    try:
        os.rename(kept, path)
    except FileNotFoundError:
        return False
    return True


def write_exit(folder: str, code: int, why: str, note: str = "") -> None:
    """Record permanently how an attempt ended: not even a power failure undoes it."""
    line = f"{code} {time.time():.3f} {why}\n{note}\n".encode()[:EXIT_SIZE].ljust(EXIT_SIZE)
    taken(room(folder, "exit"), f"{folder}/exit.new")
    handle = os.open(f"{folder}/exit.new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        write_all(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(f"{folder}/exit.new", f"{folder}/exit")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: str) -> bytes:
    """Return the whole content of a file."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, CHUNK):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all data to a file."""
    while data:
        data = data[os.write(handle, data) :]
