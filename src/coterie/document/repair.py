"""Documents with faulty fields, repaired so that further rules can be checked.

This way all faults are reported at once: those of single fields, those between fields, and those that depend on a pool
or a topology. A replacement for a faulty value is a placeholder: faults that later rules find at its path are only
consequences, and the caller drops them by the repaired paths.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from coterie.document.located import Path
from coterie.errors import Fault, SpecErrors

T = TypeVar("T")

_ROUNDS = 24
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Repaired(Generic[T]):
    """The result of reading a document without its faults, and the paths at which faulty values were replaced."""

    content: T
    gone: frozenset[Path]


def read_repaired(data: Any, read: Callable[[Any], T]) -> tuple[tuple[Fault, ...], Repaired[T] | None]:  # noqa: ANN401 - any document
    """Return the faults of data, and the result of reading it without them; None where nothing readable is left.

    `read` raises `SpecErrors` whose faults have paths. Entries of lists keep their positions, so that all paths remain
    valid in the user's text.
    """
    try:
        return (), Repaired(read(data), frozenset())
    except SpecErrors as error:
        return error.faults, _repaired(data, error.faults, read)


def _repaired(data: Any, faults: Iterable[Fault], read: Callable[[Any], T]) -> Repaired[T] | None:  # noqa: ANN401 - see above
    data, tried, gone = copy.deepcopy(data), Counter[Path](), set[Path]()
    for _ in range(_ROUNDS):
        for path in {fault.path: None for fault in faults}:
            spot = _replace(data, path, tried)
            if not spot:
                return None
            gone |= {path, spot}
        try:
            return Repaired(read(data), frozenset(gone))
        except SpecErrors as error:
            faults = error.faults
    return None


def overlaps(path: Path, gone: Iterable[Path]) -> bool:
    """Return whether a repaired path equals a path, or lies above or below it."""
    return any(path[: len(spot)] == spot or spot[: len(path)] == path for spot in gone)


def _replace(data: Any, path: Path, tried: Counter[Path]) -> Path:  # noqa: ANN401 - see above
    """Replace a faulty value by the next placeholder, or else the value that contains it; return the replaced path."""
    while path:
        *above, last = path
        owner = data
        try:
            for step in above:
                owner = owner[step]
        except (KeyError, IndexError, TypeError):
            return path  # the containing value is already replaced
        for value in _stand_ins(owner, last, sum(tried.values()))[tried[path] :]:
            tried[path] += 1
            if value is not _ABSENT:
                owner[last] = value
                return path
            if last in owner:
                del owner[last]
                return path
        path = tuple(above)
    return ()


def _stand_ins(owner: Any, last: str | int, number: int) -> tuple[Any, ...]:  # noqa: ANN401 - see above
    """Return the placeholders for a value, the likeliest first; texts are distinct, as names have to be."""
    text = f"repaired-{number}"
    if isinstance(owner, dict):
        return _ABSENT, text, f"/{text}", 1, {}, [text], [{}]
    if isinstance(owner, list) and isinstance(last, int) and last < len(owner):
        return text, f"/{text}", {}, 1
    return ()
