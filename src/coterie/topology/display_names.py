"""Names as people read and sort them; imports no arrays, so commands that only query a service start quickly."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key under which `n2` comes before `n10`."""
    parts = _DIGITS.split(name)
    texts, numbers = parts[::2], parts[1::2]
    return tuple((text, int(number)) for text, number in zip(texts, [*numbers, "-1"], strict=True))


def domain(values: Sequence[str | None]) -> str:
    """Return a domain's path; for a node outside every domain, the path ends where its labels end."""
    return "/".join("(no label)" if value is None else value for value in values)


def group_name(path: Sequence[tuple[str, str]]) -> str:
    """Return the name of a constraint group as users write it: level and group name."""
    level, name = path[-1]
    return level if name == "default" else f'{level} group "{name}"'


def sibling(gang: str) -> str:
    """Return the name of a holder that is another group of the workflow in question."""
    return f"group {gang} of this workflow"
