"""The folders of labs that end with the process that started them.

A process that is killed cannot remove its lab's folder, so the next one does.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from lab.process import started_at
from lab.realnodes import leftovers

_PREFIX = "coterie-lab-"
_OWNER = "owner"
# etcd takes most of it at once, and ends with a stack of calls where it cannot.
_ROOM = 200 << 20


def new_folder() -> Path:
    """Return a new folder for a lab of this process; folders of processes that are gone are removed."""
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    pid = os.getpid()
    (folder / _OWNER).write_text(f"{pid} {started_at(pid)}", encoding="utf-8")
    return folder


def require_room(folder: Path) -> None:
    """Raise the error of a full disk where a folder has no room for a lab."""
    if shutil.disk_usage(folder).free < _ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def keep_logs(logs: Path) -> Path:
    """Copy logs to where they stay, and return that folder."""
    kept = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}logs-"))
    shutil.copytree(logs, kept, dirs_exist_ok=True)
    return kept


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            pid, mark = (folder / _OWNER).read_text(encoding="utf-8").split(" ", 1)
            gone = started_at(int(pid)) != mark
        except (OSError, ValueError):
            # Kept logs, or a folder that is just being made or removed.
            continue
        if gone:
            leftovers.remove(folder)
            shutil.rmtree(folder, ignore_errors=True)
