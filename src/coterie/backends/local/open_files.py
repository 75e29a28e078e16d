"""Handles: each process may have so many open files, and each task that runs takes some of ours."""

from __future__ import annotations

import os
import resource

# One of the process that watches it, and one for that one's last word.
PER_TASK = 2

# For all else that this process does: its database, requests, files. At least so many, or this part of the limit.
_LEAST_OWN, _OWN_PART = 96, 4
# What is left of that in any case.
_LAST = 8
# More than this is of no use to anybody, and some programs count up to their limit.
_ENOUGH = 1 << 16

# The limit is one of the process, and so is what it was before it was raised.
_before: list[int] = []


def raise_limit() -> None:
    """Let this process have as many handles as it may; tasks get the limit that there was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _before[:] = _before or [soft]


def task_limit() -> int:
    """Return the limit of open files that tasks are to have, as the kernel counts it."""
    return _before[0] if _before else resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def at_a_time(processes: int) -> int:
    """Return how many tasks may run at a time: so many as are allowed, as far as there are handles for them."""
    return max(1, min(processes, (limit() - _own()) // PER_TASK))


def wanted_for(tasks: int) -> int:
    """Return the least limit under which so many tasks may run at a time."""
    return tasks * PER_TASK + max(_LEAST_OWN, -(-tasks * PER_TASK // (_OWN_PART - 1)))


def enough_for(tasks: int, *, alone: bool) -> bool:
    """Tell whether so many tasks can begin now, and leave handles for the rest: few, where no other task has any."""
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone, of thousands
    except OSError:
        return False  # there is not even one to look with
    return limit() - used >= tasks * PER_TASK + (_LAST if alone else _own() // 2)


def limit() -> int:
    """Return how many handles this process may have."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def _own() -> int:
    return max(_LEAST_OWN, limit() // _OWN_PART)
