"""Durations as Kubernetes objects write them: `4h`, `1h30m`, `1.5h`, `300ms`."""

from __future__ import annotations

import re
from fractions import Fraction

from coterie.document.schema import Wrong, said, wrong

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]{1,19}(?:\.[0-9]{0,19})?|\.[0-9]{1,19})(ns|us|µs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")
_LONGEST_NS = (1 << 63) - 1


def nanoseconds(value: object) -> int:
    """Return a duration, which may be zero or negative: rules judge that. Raises an error that pydantic understands."""
    if value == "0":
        return 0
    found = _WHOLE.fullmatch(value) if isinstance(value, str) and len(value) <= 200 else None
    if found is None:
        hint = "Units are h, m, s and ms: 4h, 1h30m, 90s."
        raise wrong(Wrong(f"{{field}} must be a time such as 4h or 1h30m, not {said(value)}", hint))
    amount = int(sum(Fraction(f"0{number}") * _UNITS[unit] for number, unit in _PART.findall(found[2])))
    if amount > _LONGEST_NS:
        raise wrong(Wrong(f"{{field}} is too long: {said(value)}", "At most about 292 years can be written."))
    return -amount if found[1] == "-" else amount
