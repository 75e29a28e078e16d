"""The isolation of tasks on the machine of the service, from the service and from the tasks of others."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from coterie.backends.base.account_ids import account_ids
from coterie.backends.base.reach import check_reach
from coterie.backends.base.settings import TaskAccounts
from coterie.errors import UsageError
from coterie.service.security import LOCAL

OPEN_TO_ALL = (
    "no tokens: every user of this machine may do everything here, and run commands as the user of the service"
)


def task_accounts(
    given: str | None, folder: Path, *, trusted: bool, named: str = "--task-accounts"
) -> TaskAccounts | None:
    """Return the accounts of tasks: the given ones, those of root by default, or None where tasks run as the service.

    `named` is the option or the field that gives them. Only root can start processes under other accounts, and only in
    a folder that they can enter. Tasks of callers without a token run as the service unless accounts are given: such a
    caller may do everything anyway.
    """
    if given is not None and trusted:
        raise UsageError(f"--trust-tasks and {named} cannot be used together", "Give one of the two.")
    if given is not None and os.geteuid() != 0:
        raise UsageError(
            f"only root can run tasks under other accounts, which {named} asks for", "Start the service as root."
        )
    if trusted or os.geteuid() != 0:
        return None
    if given is not None:
        check_reach(folder)
        return TaskAccounts(account_ids(given))
    try:
        check_reach(folder)
    except UsageError:
        return None  # which is said once several people have tokens
    return TaskAccounts(exempt=LOCAL.name)


def check_isolation(owners: Collection[str], accounts: TaskAccounts | None, folder: Path, *, trusted: bool) -> None:
    """Raise `UsageError` where tasks of several people would run as the service without that being said."""
    if len(owners) > 1 and accounts is None and not trusted:
        if os.geteuid() == 0:
            check_reach(folder)
        raise UsageError(
            f"{len(owners)} people have tokens, and their tasks would all run as the user of the service: any task "
            "could read and change the store and files of the service, the tasks of others, and the roles of tokens",
            "Start the service as root, and tasks run under accounts of their own. If you trust every task as you "
            "trust the service, start it with --trust-tasks.",
        )
