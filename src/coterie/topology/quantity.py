"""Kubernetes quantities, exactly: `1500m`, `0.5`, `12E2`, `1.5Gi`.

Coterie counts cpu in thousandths of a core, memory and storage in bytes and everything else in pieces, all as integers
that fit an int64. Requests are rounded up and allocatable amounts are rounded down, so that rounding never creates
capacity.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

from coterie.topology.cluster import CPU

Quantity = str | int | float

# The largest amount of any resource; the sum of two still fits an int64.
LARGEST = 1 << 62

_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WHOLE: dict[str, int] = {suffix: 10**power for suffix, power in _DECIMAL.items() if power >= 0} | {
    suffix: 1 << power for suffix, power in _BINARY.items()
}

_COMMON = re.compile(r"([0-9]{1,18})([kKMGTPE]?i?)")
_FULL = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]{0,40})(?:\.(?P<part>[0-9]{0,40}))?"
    r"(?:[eE](?P<power>[+-]?[0-9]{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)
_HINT = 'write a number with a suffix such as "m", "k", "M", "G", "Ki", "Mi" or "Gi"'


def parse_quantity(text: Quantity, resource: str = "") -> int | Fraction:
    """Return the exact value of a quantity; raise ValueError with one clear sentence for an invalid one.

    The sentence names the resource, where it is given.
    """
    if isinstance(text, bool):
        raise _invalid(str(text).lower(), resource)
    if isinstance(text, int):
        return text
    if isinstance(text, float):
        return _of_float(text, resource)
    if (common := _COMMON.fullmatch(text)) and (factor := _WHOLE.get(common[2])):
        return int(common[1]) * factor
    found = _FULL.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        raise _invalid(f'"{_shown(text)}"', resource)
    digits, part = found["whole"] or "", found["part"] or ""
    number = Fraction(int(digits + part), 10 ** len(part))
    suffix = found["suffix"] or ""
    if found["power"]:
        number *= Fraction(10) ** int(found["power"])
    elif suffix in _BINARY:
        number *= 1 << _BINARY[suffix]
    else:
        number *= Fraction(10) ** _DECIMAL[suffix]
    if found["sign"] == "-":
        number = -number
    return number.numerator if number.denominator == 1 else number


@lru_cache(maxsize=1 << 15, typed=True)
def amount(resource: str, quantity: Quantity, *, offered: bool = False) -> int:
    """Return a quantity in Coterie's units, rounded up, or rounded down when it is allocatable on a node.

    An amount beyond the int64 range is an error in a request, and counts as the largest amount in allocatable. Raises
    ValueError for such requests, for negative amounts and for text that is not a quantity.
    """
    value = parse_quantity(quantity, resource)
    if value < 0:
        raise ValueError(f"{_shown(quantity)} is negative: an amount of {resource} is zero or more")
    if resource == CPU:
        value *= 1000
    if value > LARGEST:
        if offered:
            return LARGEST
        raise ValueError(f"{_shown(quantity)} of {resource} is more than Coterie can count")
    return math.floor(value) if offered else math.ceil(value)


def _invalid(said: str, resource: str) -> ValueError:
    return ValueError(f"{said} is not a quantity{f' of {resource}' if resource else ''}: {_HINT}")


def _of_float(number: float, resource: str) -> int | Fraction:
    if not math.isfinite(number):
        raise _invalid(str(number), resource)
    # The shortest text of a float is the number as it was written: 0.1 is a tenth, not 0.1000000000000000055.
    value = Fraction(repr(number))
    return value.numerator if value.denominator == 1 else value


def _shown(quantity: Quantity) -> str:
    if isinstance(quantity, int) and quantity.bit_length() > 128:
        return "a number of more than 38 digits"
    text = str(quantity)
    return text if len(text) <= 40 else text[:40] + "…"
