"""Exit codes, one meaning each, and their lines in the help of a command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Exit(IntEnum):
    """The meaning of a command's exit code."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    NOT_FOUND = 4
    CONFLICT = 5
    MUST_WAIT = 6
    NEVER_FITS = 7
    UNSUPPORTED = 8
    TRY_AGAIN = 75
    WORK_FAILED = 100
    WORK_CANCELLED = 103
    TIMED_OUT = 124
    INTERRUPTED = 130
    PIPE = 141


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "unexpected error",
    Exit.USAGE: "wrong usage",
    Exit.INVALID: "invalid input",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict with the current state",
    Exit.MUST_WAIT: "something must wait",
    Exit.NEVER_FITS: "something can never fit",
    Exit.UNSUPPORTED: "valid, but not supported",
    Exit.TRY_AGAIN: "try again later",
    Exit.WORK_FAILED: "the workflow failed",
    Exit.WORK_CANCELLED: "the workflow was canceled",
    Exit.TIMED_OUT: "timed out",
    Exit.INTERRUPTED: "interrupted",
    Exit.PIPE: "output pipe closed",
}

# Codes that every command may return.
_ALWAYS = (Exit.DONE, Exit.FAILED, Exit.USAGE, Exit.INVALID, Exit.NOT_FOUND, Exit.TRY_AGAIN, Exit.INTERRUPTED)


def exit_code_help(*more: Exit, words: Mapping[Exit, str] | None = None) -> str:
    """Return the line about exit codes that ends a command's help: those of every command, and `more`.

    `words` describe a code for this command, where it has a particular meaning.
    """
    particular = words or {}
    codes = sorted({*_ALWAYS, *more, *particular})
    return f"Exit codes: {', '.join(f'{code} {particular.get(code, MEANINGS[code])}' for code in codes)}."
