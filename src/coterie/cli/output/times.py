"""Times of the service, and their forms for people."""

from __future__ import annotations

from datetime import UTC, datetime

from coterie.document.durations import SpanError, read_span, span
from coterie.errors import UsageError

_UNITS = (86400, 3600, 60, 1)


def moment(text: str | None) -> float | None:
    """Return a time of the service in seconds since 1970."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def between(begin: str | None, end: str | None, now: float) -> str:
    """Return how long something took, or has taken so far; `-` for what has not begun."""
    start, stop = moment(begin), moment(end)
    return "-" if start is None else duration_text((now if stop is None else stop) - start)


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: `4m12s`, `3d2h`; below ten seconds with a tenth."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    largest = next(unit for unit in _UNITS if whole >= unit)
    second = _UNITS[min(_UNITS.index(largest) + 1, len(_UNITS) - 1)]
    return span(whole - whole % second)


def clock(text: str | None) -> str:
    """Return the local time of day, to the second."""
    seconds = moment(text)
    return "--:--:--" if seconds is None else datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%H:%M:%S")


def parse_span(text: str, option: str) -> int:
    """Return the duration given to an option."""
    value: object = int(text) if text.isdecimal() and len(text) < 12 else text
    try:
        return read_span(value, f'"{text[:60]}"')
    except SpanError as error:
        raise UsageError(str(error).replace("{field}", option), "Write it as 90s, 10m or 1h30m.") from None
