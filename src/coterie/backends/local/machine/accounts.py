"""The accounts of tasks: user ids of their own, so that a task reaches neither the service nor the tasks of others."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from coterie.backends.base.reach import check_reach
from coterie.backends.base.settings import TaskAccounts
from coterie.errors import UsageError

FOLDER = ".accounts"


class AccountTable:
    """The user id of each owner, recorded once below the folder of tasks and the same ever after."""

    def __init__(self, root: Path, accounts: TaskAccounts) -> None:
        self._root, self._accounts = root.resolve(), accounts
        self._known: dict[str, int] = {}

    def of(self, owner: str) -> int | None:
        """Return the user id of an owner's tasks; None where they run as the service does.

        Raises `UsageError` where all ids are taken, or where the account could not reach the folders of its tasks.
        """
        if owner == self._accounts.exempt:
            return None
        if owner not in self._known:
            check_reach(self._root)
            self._known[owner] = self._recorded(owner)
        return self._known[owner]

    def _recorded(self, owner: str) -> int:
        ids = self._accounts.ids
        if len(ids) == 1:
            return ids[0]
        folder = self._root / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        first = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:8]) % len(ids)
        draft = folder / f".{os.getpid()}"
        draft.write_text(owner, encoding="utf-8")
        try:
            for step in range(len(ids)):
                number = ids[(first + step) % len(ids)]
                # Of two processes that record it at the same time, one is first.
                with suppress(FileExistsError):
                    (folder / str(number)).hardlink_to(draft)
                if (folder / str(number)).read_text(encoding="utf-8") == owner:
                    return number
        finally:
            draft.unlink()
        raise UsageError(
            f"all {len(ids)} task accounts belong to people other than {owner}",
            "Start the service with a wider range of --task-accounts.",
        )
