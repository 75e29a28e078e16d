"""The errors that the lab raises on purpose."""

from __future__ import annotations

from coterie.errors import CoterieError


class LabError(CoterieError):
    """Raised when the lab cannot do what it was asked to; its text is one line, its hint says what to do."""


class GoMissingError(LabError):
    """Raised when there is no Go to build the programs with."""


class TimeoutExpiredError(LabError):
    """Raised when something that was waited for did not happen; its text carries the evidence."""
