"""Exit codes, one meaning each."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of any command means."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    NOT_FOUND = 4
    MUST_WAIT = 6
    NEVER_FITS = 7
    TRY_AGAIN = 75
    INTERRUPTED = 130
    PIPE = 141


HELP = (
    "Exit codes: 0 everything can be placed now, 1 unexpected error, 2 wrong usage, 3 invalid input, 4 not found, "
    "6 something must wait, 7 something can never fit, 75 try again later, 130 interrupted."
)
