"""Logs and files of tasks, read from the folders in which they run, independent of the leader."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.base.settings import DriverSettings
from coterie.backends.local.attempt_folder import places_of
from coterie.backends.local.container_paths import check_root
from coterie.backends.local.files.regular_files import opened
from coterie.backends.local.shim.log import MARK, PACE_S, TIMES
from coterie.backends.local.work_order import AttemptKey
from coterie.errors import Unavailable


class LocalOutput:
    """The output of tasks below one folder; raises `UsageError` for a folder in which no task can run."""

    def __init__(self, settings: DriverSettings) -> None:
        self._root = settings.folder.resolve()
        check_root(self._root)

    def log(self, attempt: TaskAttempt, start: int, size: int | None = None) -> bytes:
        """Return a part of a log; empty where nothing was written, or nothing more yet."""
        return self._piece(AttemptKey(*attempt), "log", start, size)

    def log_offset(self, attempt: TaskAttempt, since: float) -> int | None:
        """Return the offset of a log at a time, by its file of times; None where nothing was written since.

        Output written within the same second cannot be distinguished by its time.
        """
        times = self._piece(AttemptKey(*attempt), f"log{TIMES}", 0)
        if not times:
            return 0
        whole = times[: len(times) - len(times) % MARK.size]
        return next((offset for at, offset in MARK.iter_unpack(whole) if at > since - PACE_S), None)

    def folder(self, attempt: TaskAttempt) -> str | None:
        """Return the folder into which an attempt writes, the same before and after its end; None before the first."""
        return f"{self._root}/{AttemptKey(*attempt).path}/output" if attempt.attempt else None

    def _piece(self, key: AttemptKey, file: str, start: int, size: int | None = None) -> bytes:
        try:
            for folder in places_of(self._root, key):
                with suppress(FileNotFoundError):
                    return _part(folder / file, start, size)
        except OSError as error:
            message = f'the log of task "{key.task}" cannot be read: {error.strerror}'
            raise Unavailable(message, "Check the state folder of the service and its disk.") from error
        return b""


def _part(path: Path, start: int, size: int | None) -> bytes:
    with opened(path) as handle:
        whole = os.fstat(handle).st_size
        offset = max(0, whole + start) if start < 0 else start
        return os.pread(handle, whole if size is None else size, offset)
