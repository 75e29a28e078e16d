"""Durations as users write them; imports no schema, so commands that only query a service start quickly."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_SECONDS = re.compile(r"0*[1-9][0-9]{0,8}")  # a number of seconds that lacks only its unit
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_LONGEST = 10 * 365 * 86400
_UNITS_HINT = "Units are d, h, m and s, in this order: 1d, 10h5m, 90s."
_HINT = f"{_UNITS_HINT} A plain number is seconds."


class SpanError(ValueError):
    """An invalid duration; `{field}` in the message stands for the field that holds it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def read_span(value: object, shown: str) -> int:
    """Return a duration in seconds from `1d`, `10h5m`, `90s` or a number; `shown` is the value in messages."""
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = int(value)
    else:
        found = _SPAN.fullmatch(value) if isinstance(value, str) and value else None
        if found is None:
            hint = f"Write {value}s. {_UNITS_HINT}" if isinstance(value, str) and _SECONDS.fullmatch(value) else _HINT
            raise SpanError(f"{{field}} must be a time such as 10h5m, not {shown}", hint)
        seconds = sum(int(part or 0) * unit for part, (_, unit) in zip(found.groups(), _UNITS, strict=True))
    if seconds <= 0:
        raise SpanError(f"{{field}} must be more than zero, but is {shown}", "Remove the line for no limit.")
    if seconds > _LONGEST:
        raise SpanError(f"{{field}} is too long: {shown}", "At most ten years are allowed.")
    return seconds


def span(seconds: int) -> str:
    """Return a duration in the notation that users write."""
    parts = []
    for unit, length in _UNITS:
        whole, seconds = divmod(seconds, length)
        if whole:
            parts.append(f"{whole}{unit}")
    return "".join(parts) or "0s"
