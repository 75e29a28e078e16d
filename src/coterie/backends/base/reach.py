"""The reach of accounts: folders that processes of another user can enter."""

from __future__ import annotations

from pathlib import Path

from coterie.errors import UsageError

_OTHERS_ENTER = 0o001


def check_reach(folder: Path) -> None:
    """Raise `UsageError` for a folder that other accounts than its owner's cannot enter."""
    for above in folder.parents:
        if above.exists() and not above.stat().st_mode & _OTHERS_ENTER:
            raise UsageError(
                f"tasks run under accounts of their own, which cannot enter {above} on the way to their folders",
                "Name another folder with --state, such as /var/lib/coterie, allow others to enter this one "
                f"(chmod o+x {above}), or let tasks run as the service with --trust-tasks.",
            )
