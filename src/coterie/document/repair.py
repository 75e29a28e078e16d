"""Documents with faulty fields, made good enough to be held against further rules.

So all faults are reported at once: those of single fields, those between fields, and those that a pool or a topology
shows. What is put in place of a fault stands for nothing: what later rules say of it is only a consequence, and whoever
asks them leaves that out, by the paths that were mended.
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
class Mended(Generic[T]):
    """What was read once every fault was out of the way, and the paths at which something was put away for it."""

    content: T
    gone: frozenset[Path]


def sound(data: Any, read: Callable[[Any], T]) -> tuple[tuple[Fault, ...], Mended[T] | None]:  # noqa: ANN401 - any document
    """Read data, return its faults, and what is read without them; None where that leaves nothing to read.

    `read` raises `SpecErrors` whose faults have paths. Entries of lists stay where they are, so that all paths lead
    where they lead in the user's text.
    """
    try:
        return (), Mended(read(data), frozenset())
    except SpecErrors as error:
        return error.faults, _mended(data, error.faults, read)


def _mended(data: Any, faults: Iterable[Fault], read: Callable[[Any], T]) -> Mended[T] | None:  # noqa: ANN401 - see above
    data, tried, gone = copy.deepcopy(data), Counter[Path](), set[Path]()
    for _ in range(_ROUNDS):
        for path in {fault.path: None for fault in faults}:
            spot = _replace(data, path, tried)
            if not spot:
                return None
            gone |= {path, spot}
        try:
            return Mended(read(data), frozenset(gone))
        except SpecErrors as error:
            faults = error.faults
    return None


def meets(path: Path, gone: Iterable[Path]) -> bool:
    """Tell whether something that was mended lies at a path, above it or below it."""
    return any(path[: len(spot)] == spot or spot[: len(path)] == path for spot in gone)


def _replace(data: Any, path: Path, tried: Counter[Path]) -> Path:  # noqa: ANN401 - see above
    """Put the next thing that may do in place of a fault, or else of what it stands in; return where that was."""
    while path:
        *above, last = path
        owner = data
        try:
            for step in above:
                owner = owner[step]
        except (KeyError, IndexError, TypeError):
            return path  # what it stood in is gone already
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
    """Return what may stand in place of a value, the likeliest first; texts are all different, as names have to be."""
    text = f"mended-{number}"
    if isinstance(owner, dict):
        return _ABSENT, text, 1, {}, [text], [{}]
    if isinstance(owner, list) and isinstance(last, int) and last < len(owner):
        return text, {}, 1
    return ()
