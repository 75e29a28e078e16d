"""Reads of files in folders that tasks can change: never through a link, never waiting, and only regular files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The size of everything that Coterie writes about an attempt is far below this.
_MOST = 1 << 24
# Most of it is smaller than this. Memory for the largest would be reserved for each of thousands of files.
_USUAL = 4096


@contextmanager
def opened(path: Path | str) -> Iterator[int]:
    """Yield a handle of a regular file; raise `OSError` for anything else, such as a FIFO, a device or a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield handle
    finally:
        os.close(handle)


def content(path: Path | str) -> bytes:
    """Return the content of a small regular file, cut off where it is absurdly large."""
    with opened(path) as handle:
        found = os.pread(handle, _USUAL, 0)
        return found if len(found) < _USUAL else found + os.pread(handle, _MOST - _USUAL, _USUAL)


def text(path: Path | str) -> str:
    """Return the text of a small regular file, with replacements for what is not UTF-8."""
    return content(path).decode("utf-8", "replace")
