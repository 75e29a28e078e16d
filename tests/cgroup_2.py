"""Commands on a machine whose control groups are of version 2 only, whatever this machine has."""

from __future__ import annotations

import subprocess

import pytest

# In a mount namespace of its own: the machine keeps its control groups.
_PREFIX = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    'umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"',
    "sh",
)


def on_cgroup_2(*command: str) -> list[str]:
    """Return a command that runs another one on such a machine; skip the test, loudly, where that is not permitted."""
    done = subprocess.run([*_PREFIX, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"NO CGROUP 2: it cannot be mounted here, and is NOT TESTED: {done.stderr.strip()}")
    return [*_PREFIX, *command]
