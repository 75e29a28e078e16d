"""Amounts and durations as users write them: counts, sizes with units, durations."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator

from coterie.document.durations import SpanError, read_span
from coterie.document.schema import TypeName, Wrong, said, wrong
from coterie.errors import nearest

# The engine adds amounts in 64-bit integers, and JSON readers are exact only up to 2**53.
LARGEST = 1 << 53
LARGEST_CPU = LARGEST // 1000

_UNITS = {"": 1, "B": 1, **{unit: 1000**power for power, unit in enumerate("KMGT", start=1)}}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGT", start=1)}
_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]*)")
_DIGITS = re.compile(r"[0-9]+")


def _count(value: object, largest: int) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value) if len(value) <= 30 else largest + 1
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(Wrong(f"{{field}} must be a whole number, not {said(value)}", "Example: 8"))
    if value < 0:
        raise wrong(
            Wrong(f"{{field}} must not be negative, but is {said(value)}", "Use 0 or remove the line to ask for none.")
        )
    if value > largest:
        raise wrong(Wrong(f"{{field}} is too large: {said(value)}", f"At most {largest} is allowed."))
    return int(value)


def count(value: object) -> int:
    """Return a count; digits in quotes are taken as the number they spell."""
    return _count(value, LARGEST)


def cpus(value: object) -> int:
    """Return a number of whole processors."""
    return _count(value, LARGEST_CPU)


def size(value: object) -> int:
    """Return an amount of memory or storage in bytes, the default unit; fractions are rounded up."""
    text = said(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise wrong(Wrong(f"{{field}} must be an amount such as 16Gi, not {said(value)}", _UNIT_HINT))
    number, unit = found.groups()
    if unit not in _UNITS:
        guess = nearest(unit.removesuffix("B").removesuffix("b"), [known for known in _UNITS if known])
        raise wrong(
            Wrong(
                f'{{field}} has the unknown unit "{unit}"',
                f"{_UNIT_HINT}{f' Did you mean {number}{guess}?' if guess else ''}",
            )
        )
    amount: int = math.ceil(Fraction(number) * _UNITS[unit])
    if amount > LARGEST:
        raise wrong(Wrong(f"{{field}} is too large: {said(value)}", f"At most {LARGEST} bytes are allowed."))
    return amount


def duration(value: object) -> int:
    """Return a duration in seconds from `1d`, `10h5m`, `90s`, or a number of seconds."""
    try:
        return read_span(value, said(value))
    except SpanError as error:
        raise wrong(Wrong(str(error), error.hint)) from None


_UNIT_HINT = "Units are B, K, M, G, T (thousands) and Ki, Mi, Gi, Ti (1024s)."

Count = Annotated[int, BeforeValidator(count), TypeName("a whole number")]
Cpus = Annotated[int, BeforeValidator(cpus), TypeName("a whole number")]
Size = Annotated[int, BeforeValidator(size), TypeName("an amount such as 16Gi")]
Duration = Annotated[int, BeforeValidator(duration), TypeName("a time such as 10h5m, or seconds")]
