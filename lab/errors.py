"""The errors that the lab raises on purpose."""

from __future__ import annotations

from pathlib import Path

from coterie.errors import CoterieError


class LabError(CoterieError):
    """Raised when the lab cannot do what it was asked to; its text is one line, its hint says what to do."""


class GoMissingError(LabError):
    """Raised when there is no Go to build the programs with."""


class TimeoutExpiredError(LabError):
    """Raised when something that was waited for did not happen; its text carries the evidence."""


def start_failure(folder: Path | str, error: OSError) -> LabError:
    """Return the error of a lab whose folder cannot be used."""
    return LabError(
        f"the lab cannot be started in {folder}: {error.strerror or error}",
        "It needs a writable folder with room for about 200 MB; "
        "name another one with $XDG_STATE_HOME for `lab up`, with $TMPDIR for tests.",
    )
