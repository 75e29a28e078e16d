# ruff: noqa: PTH110, PTH208 - a shim starts without pathlib, which takes longer than all the rest
"""The end of a command: its exit code, and the end of its descendants."""

from __future__ import annotations

import errno
import os
import signal
import time

from .ownership import stat

_PATIENCE_S = 10.0


def exit_code(status: int) -> int:
    """Return an exit code as shells do: 128 and the signal's number for a process that a signal ended."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def unstartable(word: str, error: OSError | ValueError) -> tuple[int, str]:
    """Return the exit code of a command that cannot be started, and why."""
    here = "commands run on this machine, not in the container image"
    if not word:
        return 127, "cannot run a command without a name"
    if isinstance(error, ValueError):
        return 126, f'cannot run "{word}": an argument or variable contains a zero byte'
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if "/" not in word:
            return 127, f'cannot run "{word}": it was not found on PATH; {here}'
        if os.path.exists(word):
            return 127, f'cannot run "{word}": the interpreter that its first line names does not exist; {here}'
        return 127, f'cannot run "{word}": there is no such file; {here}'
    if error.errno == errno.EACCES:
        return 126, f'cannot run "{word}": it is not executable'
    if error.errno == errno.ENOEXEC:
        return 126, f'cannot run "{word}": it is neither a program nor a script with #! in its first line'
    return 126, f'cannot run "{word}": {error.strerror}'


def descendants(top: int) -> list[int]:
    """Return all descendants of a process."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := stat(int(name))) and found[0] not in "ZX":
            below.setdefault(int(found[1]), []).append(int(name))
    front, all_below = [top], []
    while front:
        children = below.get(front.pop(), [])
        all_below += children
        front += children
    return all_below


def end_all(group: int) -> int:
    """End all remaining processes of the command; return how many remain."""
    deadline = time.monotonic() + _PATIENCE_S
    pause = 0.001
    while _children_left():
        left = descendants(os.getpid())
        send(-group, signal.SIGKILL)
        for pid in left:
            send(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return len(left)
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
    return 0


def _children_left() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def reap(pid: int) -> int | None:
    """Reap all ended children; return the status of the given one, if it is among them."""
    while True:
        found, status = os.waitpid(-1, os.WNOHANG)
        if found in (0, pid):
            return status if found else None


def send_group(leader: int, number: int) -> None:
    """Send a signal to a process group, or to its future leader alone while that has not formed the group yet."""
    try:
        os.kill(-leader, number)
    except (ProcessLookupError, PermissionError):
        send(leader, number)


def send(pid: int, number: int) -> None:
    """Send a signal to a process or process group; one that has ended is ignored."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # Gone, or another user's by now: neither can be changed from here.
        return
