"""The temporary folder of a run, removed with the run or by the next one.

Its tasks end with the process that made it, even if that is killed. The folder itself then stays, and its released lock
tells the next run that it is abandoned.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from coterie.backends.local import temporary_tasks
from coterie.backends.local.container_paths import check_root
from coterie.service.settings import TASKS

_PREFIX = "coterie-run-"
_LOCK = "lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder of this process, after removing those of processes that died before they could."""
    base = Path(tempfile.gettempdir()).resolve()
    check_root(base, "Set $TMPDIR to one")
    _sweep(base)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    try:
        with _locked(folder):
            temporary_tasks.end_with_this_process(folder / TASKS)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder as long as this process lives; the folder gets its name only when the lock is held."""
    draft = folder / f"{_LOCK}.new"
    with draft.open("xb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        draft.rename(folder / _LOCK)
        yield


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        # Its errors do not concern the run that found it.
        with suppress(OSError):
            if _is_mine(folder) and _is_abandoned(folder):
                temporary_tasks.end_all(folder / TASKS)
                shutil.rmtree(folder, ignore_errors=True)


def _is_mine(folder: Path) -> bool:
    found = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and found.st_uid == os.geteuid()


def _is_abandoned(folder: Path) -> bool:
    """Return whether the creator of a folder is gone; one without a lock is being created or removed."""
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return False
    return True
