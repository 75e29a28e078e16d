"""The ownership of a task folder by one store: for another store, its tasks would be strays and its logs garbage."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from coterie.errors import Unavailable, UsageError
from coterie.service.driver.election.replica import is_gone, machine
from coterie.store import Store

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


def register(store: Store, folder: Path, holder: str) -> None:
    """Record that a process of this machine uses a folder with a store.

    Raises `UsageError` while another process of this machine uses another folder with it: whichever leads would not
    find the tasks of the other, and start them a second time.
    """
    path = str(folder.resolve())

    def with_mine(text: str) -> str:
        used, others = _users(text)
        if others and used != path:
            process = others[0].split("/")[1]
            raise UsageError(
                f"process {process} of this machine uses {store.name} with the folder {Path(used).parent}",
                f"Start this one with --state {Path(used).parent} as well, name another store with --store, or stop "
                "the other.",
            )
        return json.dumps([path, *others, holder])

    store.annotate(_place(), with_mine)


def unregister(store: Store, holder: str) -> None:
    """Remove the record of a process."""

    def without(text: str) -> str:
        used, others = _users(text)
        return json.dumps([used, *(each for each in others if each != holder)])

    store.annotate(_place(), without)


def _place() -> str:
    return f"folder {machine()}"


def _users(text: str) -> tuple[str, list[str]]:
    """Return the recorded folder, and the processes that use it and still run."""
    try:
        used, *holders = map(str, json.loads(text))
    except ValueError:
        return "", []
    return used, [each for each in holders if not is_gone(each)]


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
