"""Names of Kubernetes objects: valid, readable, short enough, and distinct for distinct objects.

Users' names lose their case and their underscores in the conversion, so two of them can become equal. A short digest of
the exact original keeps them distinct.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence

LONGEST = 63

_OTHER = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """Return the part of a text that Kubernetes allows: lower-case letters and digits, joined by "-", or nothing."""
    return _OTHER.sub("-", text.lower()).strip("-")


def digest(*identity: str) -> str:
    """Return eight hexadecimal digits that identify these texts, in this order."""
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]


def name_of(words: Sequence[str], *identity: str, longest: int = LONGEST) -> str:
    """Return a name that begins with these words, as far as they fit, and is distinct for every identity."""
    mark = digest(*identity)
    readable = shortened(words, longest - len(mark) - 1)
    return f"{readable}-{mark}" if readable else mark


def shortened(words: Sequence[str], longest: int) -> str:
    """Return the joined slugs of words; where they are too long together, the longest are cut."""
    parts = [part for word in words if (part := slug(word))]
    while len("-".join(parts)) > longest:
        which = max(range(len(parts)), key=lambda index: len(parts[index]))
        parts[which] = parts[which][:-1]
        parts = [part for part in parts if part]
    return "-".join(stripped for part in parts if (stripped := part.strip("-")))


def label_value(text: str) -> str:
    """Return one of our names as a label value: unchanged, unless it is too long."""
    if len(text) <= LONGEST:
        return text
    mark = digest(text)
    return f"{text[: LONGEST - len(mark) - 1].rstrip('-_.')}-{mark}"


def free_name(wanted: str, taken: Collection[str], *identity: str) -> str:
    """Return the wanted name, or one with a digest when it is too long or taken."""
    if len(wanted) <= LONGEST and wanted not in taken:
        return wanted
    found, turn = wanted, 0
    while found in taken or len(found) > LONGEST:
        found = name_of([wanted], *identity, *([str(turn)] if turn else []))
        turn += 1
    return found
