"""Time spans as users write them. Light: commands that only ask a service read them without any schema."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_LONGEST = 10 * 365 * 86400
_HINT = "Units are d, h, m and s, in this order: 1d, 10h5m, 90s. A plain number is seconds."


class SpanError(ValueError):
    """What is wrong with a time span; `{field}` stands for what it was written for."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def read_span(value: object, shown: str) -> int:
    """Read a time span in seconds: `1d`, `10h5m`, `90s`, or a number of them; `shown` is the value in messages."""
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = int(value)
    else:
        found = _SPAN.fullmatch(value) if isinstance(value, str) and value else None
        if found is None:
            raise SpanError(f"{{field}} must be a time such as 10h5m, not {shown}", _HINT)
        seconds = sum(int(part or 0) * unit for part, (_, unit) in zip(found.groups(), _UNITS, strict=True))
    if seconds <= 0:
        raise SpanError(f"{{field}} must be longer than nothing, but is {shown}", "Remove the line for no limit.")
    if seconds > _LONGEST:
        raise SpanError(f"{{field}} is too long: {shown}", "At most ten years are allowed.")
    return seconds


def span(seconds: int) -> str:
    """Write a time span the way users write it."""
    parts = []
    for unit, length in _UNITS:
        whole, seconds = divmod(seconds, length)
        if whole:
            parts.append(f"{whole}{unit}")
    return "".join(parts) or "0s"
