"""Compact lists of names as ranges: `n[01-08,12],x3`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from coterie.topology.display_names import natural

# Longer runs of digits are parts of ids, not counters.
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,9}(?![0-9])")
_SYNTAX = re.compile(r"[\[\],]")

# The values of each numeric field of some names; the names are all combinations of them.
_Fields = tuple[tuple[str, ...], ...]


def fold(names: Iterable[str]) -> str:
    """Return a set of names as ranges, in natural order.

    Zero padding is kept: `n[08-10]` is n08, n09, n10. Where several numbers vary together the brackets multiply:
    `r[1-2]-n[1-8]` is sixteen names. Names that contain brackets or commas are kept unchanged.
    """
    shapes: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    pieces: list[tuple[str, str]] = []
    for name in set(names):
        if _SYNTAX.search(name):
            pieces.append((name, name))
        else:
            shapes.setdefault(tuple(_NUMBER.split(name)), set()).add(tuple(_NUMBER.findall(name)))
    for texts, numbers in shapes.items():
        for fields in _merged(numbers):
            first = _written(texts, [values[0] for values in fields])
            pieces.append((first, _written(texts, [_ranges(values) for values in fields])))
    return ",".join(text for _, text in sorted(pieces, key=lambda piece: (natural(piece[0]), piece)))


def _merged(numbers: Iterable[tuple[str, ...]]) -> list[_Fields]:
    """Join tuples that differ in one field only, the last field first."""
    boxes: list[_Fields] = sorted(tuple((number,) for number in each) for each in numbers)
    width = len(boxes[0])
    for field in reversed(range(width)):
        alike: dict[_Fields, list[str]] = {}
        for box in boxes:
            alike.setdefault(box[:field] + box[field + 1 :], []).extend(box[field])
        boxes = [
            (*rest[:field], tuple(sorted(values, key=lambda text: (int(text), text))), *rest[field:])
            for rest, values in alike.items()
        ]
    return boxes


def _ranges(values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    runs: list[list[str]] = []
    # Padded and plain numbers alternate when sorted (01, 1, 02, 2), so each run is looked up by the number it needs
    # next.
    awaited: dict[str, list[str]] = {}
    for value in values:
        run = awaited.pop(value, None)
        if run is None:
            run = []
            runs.append(run)
        run.append(value)
        awaited[_after(run[0], len(run))] = run
    return "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"


def _after(start: str, steps: int) -> str:
    return str(int(start) + steps).zfill(len(start))


def _written(texts: Sequence[str], numbers: Sequence[str]) -> str:
    return "".join(text + number for text, number in zip(texts, [*numbers, ""], strict=True))
