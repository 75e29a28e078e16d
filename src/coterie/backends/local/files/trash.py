"""The deletion of removed folders on a thread of its own, file by file, however many and however deep they are."""

from __future__ import annotations

import os
import stat
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from coterie.backends.local import attempt_folder as folders

# After so many entries, nothing is deleted for as long as they took: the disk is also needed by the store and by tasks.
_PIECE = 200
_LONGEST_PAUSE_S = 1.0


class TrashCollector:
    """The thread that deletes what `attempt_folder.remove` has moved away; it may be interrupted at any moment.

    Folders within a folder are first moved beside it, so that no path grows long and nothing is recursive.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._deleted, self._since = 0, 0.0
        self._names = count()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Delete everything in the trash, soon."""
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="coterie-trash", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End after the current file; the next collector continues."""
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._wanted.wait() and not self._closed.is_set():
            self._wanted.clear()
            with suppress(OSError):
                front = folders.trash(self._root)
                while front and not self._closed.is_set():
                    # What cannot be deleted stays, and is tried again with the next removal.
                    with suppress(OSError):
                        front += self._delete(front.pop())

    def _delete(self, path: Path) -> list[Path]:
        """Delete one folder; return the folders that were in it, which are beside it now."""
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return []
        _unlock(str(path))
        moved: list[Path] = []
        with os.scandir(path) as entries:
            for entry in entries:
                self._pause()
                if self._closed.is_set():
                    return []
                if entry.is_dir(follow_symlinks=False):
                    _unlock(entry.path)
                    aside = self._root / folders.TRASH / f"{os.getpid()}-{id(self):x}-{next(self._names)}"
                    Path(entry.path).rename(aside)
                    moved.append(aside)
                else:
                    os.unlink(entry.path)  # noqa: PTH108 - one of very many
        path.rmdir()
        return moved

    def _pause(self) -> None:
        """Wait after each piece, for as long as it took."""
        if self._deleted % _PIECE == 0:
            if self._deleted:
                self._closed.wait(min(time.monotonic() - self._since, _LONGEST_PAUSE_S))
            self._since = time.monotonic()
        self._deleted += 1


def _unlock(folder: str) -> None:
    """Restore the permission to delete, which a task may have removed from its own folders."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101 - one of very many
