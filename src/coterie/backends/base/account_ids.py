"""The user ids of tasks as an operator writes them: FIRST-LAST, or one user."""

from __future__ import annotations

import pwd

from coterie.errors import UsageError

HINT = "Write a range of user ids such as 200000-200999, for one of each person, or one user other than root."

_HIGHEST = (1 << 31) - 1


def account_fault(written: str) -> str:
    """Return why a text cannot be the accounts of tasks on any machine; empty where it can."""
    first, _, last = written.partition("-")
    numbers = first.isdecimal() and (last or first).isdecimal()
    if written == "root" or not written.strip() or written.startswith("-") or (numbers and not _range(first, last)):
        return "names no accounts for tasks"
    return ""


def account_ids(written: str) -> range:
    """Return the user ids of a text; raise `UsageError` for one that names none on this machine."""
    if account_fault(written):
        raise UsageError(f'"{written[:80]}" names no accounts for tasks', HINT)
    first, _, last = written.partition("-")
    if found := _range(first, last):
        return found
    try:
        number = pwd.getpwnam(written).pw_uid
    except KeyError:
        raise UsageError(f'there is no user "{written[:80]}"', HINT) from None
    if not number:
        raise UsageError(f'"{written[:80]}" is another name for root', HINT)
    return range(number, number + 1)


def _range(first: str, last: str) -> range | None:
    """Return a range of user ids, or None where that is not one."""
    if not first.isdecimal() or not (last or first).isdecimal():
        return None
    low, high = int(first), int(last or first)
    return range(low, high + 1) if 0 < low <= high <= _HIGHEST else None
