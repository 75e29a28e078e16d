"""The content of a whole input, up to a size that memory can hold."""

from __future__ import annotations

import os
import select
import stat
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from coterie.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_LIMIT = 448 << 20
_CHUNK = 1 << 20
_LOOK_MS = 250
# The name of standard input as a file, in messages and in the places of faults.
STANDARD_INPUT = "standard input"
_SHRINK = (
    "Leave out what placement does not need: "
    "kubectl get nodes,pods -A -o json | jq -c 'del(.items[].metadata.managedFields, .items[].status.images)'"
)


def read_bytes(path: str, stdin: BinaryIO, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return the bytes of a file, or of `stdin` when the path is "-".

    Raises NotFound for a file that is not there, and UsageError for one that cannot be read or is larger than `limit`
    bytes; a regular file is measured before any of it is read.
    """
    if path == "-":
        return _up_to(stdin, limit, STANDARD_INPUT)
    if not path:
        raise UsageError("the name of the cluster is empty", hint='Give a file name, or "-" for standard input.')
    try:
        found = Path(path).stat()
        if stat.S_ISDIR(found.st_mode):
            raise UsageError(f"{path} is a directory", hint="Name a file in it.", file=path)
        if stat.S_ISREG(found.st_mode) and found.st_size > limit:
            raise UsageError(_too_large(path, found.st_size, limit), hint=_SHRINK, file=path)
        with Path(path).open("rb") as file:
            return _up_to(file, limit, path)
    except FileNotFoundError:
        hint = 'Check the name; "-" reads standard input.'
        raise NotFound(f"there is no file {path}", hint=_neighbour(path) or hint, file=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a file name"
        message = f"{path!r} cannot be read: {reason[:1].lower()}{reason[1:]}"
        raise UsageError(message, "Check the name and that you may read the file.", file=path) from None


def _up_to(stream: BinaryIO, limit: int, name: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    for chunk in _chunks(stream):
        size += len(chunk)
        if size > limit:
            raise UsageError(_too_large(name, None, limit), hint=_SHRINK, file=name)
        chunks.append(chunk)
    return b"".join(chunks)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a stream, handling an interrupt at any moment of waiting.

    Python runs a signal handler between two of its own instructions. A signal that arrives just before a blocking read
    would be handled only after the read, so a read begins only when data is available, which is polled at short
    intervals.
    """
    try:
        descriptor = stream.fileno()
    except OSError:  # held in memory
        yield from iter(partial(stream.read, _CHUNK), b"")
        return
    arrivals = select.poll()
    arrivals.register(descriptor, select.POLLIN)
    while True:
        if arrivals.poll(_LOOK_MS):
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return
            yield chunk


def _too_large(name: str, size: int | None, limit: int) -> str:
    found = "" if size is None else f"{size / (1 << 20):,.0f} MiB, "
    return f"{name} is too large: {found}at most {limit / (1 << 20):,.0f} MiB are read"


def _neighbour(path: str) -> str:
    """Return a hint when a file exists that differs only in its extension."""
    wanted = Path(path)
    for ending in (".yaml", ".yml", ".json"):
        other = wanted.with_suffix(ending) if wanted.name else wanted
        if other != wanted and other.is_file():
            return f"Did you mean {other}?"
    return ""
