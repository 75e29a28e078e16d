"""The ownership of a task folder by one store: for another store, its tasks would be strays and its logs garbage."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from coterie.errors import Unavailable, UsageError

_NAME = ".store"


def claim(folder: Path, store: str, name: str) -> None:
    """Record that a folder belongs to the store with this identity; `name` is its name for users.

    Raises `UsageError` where it belongs to another store: everything in it would be ended and removed.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = _owner(folder, store)
    except OSError as error:
        raise Unavailable(
            f"{folder} cannot be used: {error.strerror}", "Look at its permissions and its disk."
        ) from None
    if owner != store:
        raise UsageError(
            f"the tasks in {folder} belong to another store than {name}",
            f"Name their store with --store, or another folder with --state. If that store is lost for good, so are "
            f"they: end them, and remove {folder}.",
        )


def _owner(folder: Path, store: str) -> str:
    path = folder / _NAME
    with suppress(FileNotFoundError):
        if found := path.read_text().strip():
            return found
    draft = folder / f"{_NAME}.{os.getpid()}"
    draft.write_text(store)
    # Of two processes that write it at the same time, one is first.
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    return path.read_text().strip()
