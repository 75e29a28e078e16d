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


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Yield a handle of a regular file; raise `OSError` for anything else, such as a FIFO, a device or a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield handle
    finally:
        os.close(handle)


def content(path: Path) -> bytes:
    """Return the content of a small regular file, cut off where it is absurdly large."""
    with opened(path) as handle:
        return os.pread(handle, _MOST, 0)


def text(path: Path) -> str:
    """Return the text of a small regular file, with replacements for what is not UTF-8."""
    return content(path).decode("utf-8", "replace")
