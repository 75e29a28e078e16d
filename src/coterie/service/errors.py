"""What only the service raises.

CoterieError
├── Conflict       somebody else was first, or what is there now forbids it
├── Unauthorized   who asks is not known
└── Forbidden      who asks is known, and may not do it
"""

from __future__ import annotations

from coterie.errors import CoterieError


class Conflict(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when the call was right, but what is stored does not allow it now."""


class Unauthorized(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller does not say who they are, or says it wrongly."""


class Forbidden(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller's role does not reach so far."""
