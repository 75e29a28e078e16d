"""Tasks that end with the process that runs them, unlike all others."""

from __future__ import annotations

import os
from pathlib import Path

from coterie.backends.local.attempt_folder import known_mark, make_root
from coterie.backends.local.machine import processes
from coterie.backends.local.shim import ownership


def end_with_this_process(root: Path) -> None:
    """Make the tasks below a root end with this process, however it ends; to be called before the first one begins."""
    make_root(root)
    ownership.write(f"{root}/{ownership.KEEPER}", ownership.identity(os.getpid()).encode())


def end_all(root: Path) -> None:
    """End all tasks below a root that have no supervisor any more."""
    if mark := known_mark(root):
        processes.end(lambda found: found.startswith(f"{mark}/"))
