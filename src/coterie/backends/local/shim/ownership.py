# ruff: noqa: PTH104, PTH108 - a shim starts without pathlib, which takes longer than all the rest
"""Who owns an attempt, and the files that say so. Processes are named so that none can be taken for another."""

from __future__ import annotations

import errno
import os
import time

EXIT_SIZE = 512
# For what room is kept from the beginning, and how much: a block of the disk, whatever its size.
ROOMS = ("claim", "pid", "exit")
ROOM_SIZE = 128
WITHDRAWN = "withdrawn"
# Beside the workflows: which process all of them end with, where there is one.
KEEPER = ".keeper"
CHUNK = 1 << 16


def boot() -> str:
    """Return what tells this start of the machine from every other."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def stat(pid: int) -> list[str] | None:
    """Return what the kernel says about a process, from its state on; nothing when it is gone."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].decode().split()
    except OSError:
        return None


def started(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks: with it, a number used again is not mistaken."""
    found = stat(pid)
    return None if found is None or found[0] in "ZX" else found[19]


def identity(pid: int) -> str:
    """Return the line that stands for a living process, now and after any restart."""
    return f"{pid} {started(pid)} {boot()}"


def keeper(folder: str) -> int | None:
    """Open the process that an attempt ends with; nothing where it outlives everybody.

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
    """Take an attempt, which must be in nobody's hands; tell whether that worked. The content is there at once."""
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
    """Return the file of spaces that takes the room which one of the `ROOMS` will need."""
    return f"{folder}/room.{name}"


def write(path: str, data: bytes, into: str = "") -> None:
    """Write a small file; where there is room kept for it, into that, and so also on a full disk."""
    fresh = 0 if into and taken(into, path) else os.O_TRUNC
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | fresh, 0o644)
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def taken(kept: str, path: str) -> bool:
    """Give room that was kept to a file; tell whether it was still there. Only one can have it."""
    try:
        os.rename(kept, path)
    except FileNotFoundError:
        return False
    return True


def write_exit(folder: str, code: int, why: str, note: str = "") -> None:
    """Say how an attempt ended, for good: after this even a power cut does not undo it."""
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
    """Return all that a file holds."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, CHUNK):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write to a file until all is written."""
    while data:
        data = data[os.write(handle, data) :]
