"""The traces of real nodes that the kernel does not remove by itself when their processes are gone.

They are named after the lab's folder, so that anybody who finds the folder can remove them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lab.realnodes import cgroups, network

_ROOT = Path(__file__).parents[2]


def identity(folder: Path) -> str:
    """Return the id by which the control groups and the bridge of a lab are distinct from those of others."""
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]


def cgroup_prefix(folder: Path) -> str:
    """Return the common prefix of the names of a lab's control groups."""
    return f"coterie-lab-{identity(folder)}-"


def remove(folder: Path) -> None:
    """Remove the control groups of a lab with every process in them, and its bridge; nothing where there are none."""
    if not os.geteuid():
        cgroups.remove(cgroup_prefix(folder))
        network.remove(identity(folder))


def guard(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that removes a lab's folder and traces when this process ends without closing its input first."""
    # S603: this module.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "lab.realnodes.leftovers", str(folder)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _main() -> None:
    """Wait until the other end of the standard input is closed, and clean up unless told before that all is well."""
    if not sys.stdin.buffer.read():
        folder = Path(sys.argv[1])
        remove(folder)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main()
