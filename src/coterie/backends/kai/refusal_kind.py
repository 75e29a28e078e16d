"""The subjects of KAI's words about a gang that waits: KAI gives its reasons as sentences alone."""

from __future__ import annotations

import re

from coterie.backends.base.traits import RefusalKind

# In the order in which they are tried: words about claims occur in sentences about devices, too.
_SUBJECTS = (
    (RefusalKind.MEMBERS, re.compile(r"waiting for \d+ pods", re.IGNORECASE)),
    (RefusalKind.QUOTA, re.compile(r"over.?quota|limit is |exceeds? .*quota", re.IGNORECASE)),
    (RefusalKind.DEVICES, re.compile(r"allocate all claims", re.IGNORECASE)),
    (RefusalKind.CLAIMS, re.compile(r"resource ?claim", re.IGNORECASE)),
)


def kai_refusal_kind(words: str) -> RefusalKind | None:
    """Return the subject of KAI's words; None where they have no known one."""
    return next((kind for kind, pattern in _SUBJECTS if pattern.search(words)), None)
