"""Times in queries."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(at: datetime | None) -> float | None:
    """Return a time as seconds since 1970; without a zone it is UTC."""
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
