"""File handles: the limit of open files per process, and the handles that each running task needs."""

from __future__ import annotations

import os
import resource

# One for the process that supervises it, and one for its final message.
PER_TASK = 2

# Reserved for everything else in this process: database, requests, files. At least this many, or this part of the
# limit.
_LEAST_OWN, _OWN_PART = 96, 4
# The part of the reserve that stays in any case.
_LAST = 8
# A higher limit is of no use, and some programs iterate up to their limit.
_ENOUGH = 1 << 16

# The limit belongs to the process, and so does its value before it was raised.
_before: list[int] = []


def raise_limit() -> None:
    """Raise the limit of open files of this process; tasks keep the original limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _before[:] = _before or [soft]


def task_limit() -> int:
    """Return the limit of open files for tasks, as the kernel counts it."""
    return _before[0] if _before else resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def at_a_time(processes: int) -> int:
    """Return how many tasks may run at a time: the allowed number, as far as there are handles for them."""
    return max(1, min(processes, (limit() - _own()) // PER_TASK))


def wanted_for(tasks: int) -> int:
    """Return the lowest limit under which this many tasks may run at a time."""
    return tasks * PER_TASK + max(_LEAST_OWN, -(-tasks * PER_TASK // (_OWN_PART - 1)))


def enough_for(tasks: int, *, alone: bool) -> bool:
    """Return whether this many tasks can begin now and leave handles for the rest: few, where no other task has any."""
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone, of thousands
    except OSError:
        return False  # not even one handle is left for this check
    return limit() - used >= tasks * PER_TASK + (_LAST if alone else _own() // 2)


def limit() -> int:
    """Return the limit of open files of this process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def _own() -> int:
    return max(_LEAST_OWN, limit() // _OWN_PART)
