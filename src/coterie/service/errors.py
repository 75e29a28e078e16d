"""What only the service raises.

CoterieError
├── Conflict       somebody else was first, or what is there now forbids it
│   └── PlanStale  a plan that was to be carried out is no longer what would happen
├── Unauthorized   who asks is not known
└── Forbidden      who asks is known, and may not do it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.errors import CoterieError


class Conflict(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when the call was right, but what is stored does not allow it now; `details` are for programs."""

    def __init__(self, message: str, hint: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint)
        self.details = dict(details or {})


class PlanStale(Conflict):
    """Raised when a workflow is to be submitted as planned, and the plan would be another one now."""


class Unauthorized(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller does not say who they are, or says it wrongly."""


class Forbidden(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller's role does not reach so far."""
