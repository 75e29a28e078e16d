"""The choice of the fewest places that hold a number of pods, and among those the tightest.

It is needed twice: for the domains that a group is spread over when one is not enough, and for the nodes of a domain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


# Up to this many places, plain Python is faster than array operations.
_FEW = 64


def fewest(room: Ints, wanted: int) -> int | None:
    """Return the least number of places whose room adds up to `wanted`; None when all together do not suffice."""
    if wanted <= 0:
        return 0
    if len(room) <= _FEW:
        for count, size in enumerate(sorted(room.tolist(), reverse=True), start=1):
            wanted -= size
            if wanted <= 0:
                return count
        return None
    if int(room.max()) >= wanted:
        return 1
    falling = np.sort(room)[::-1].cumsum()
    if falling[-1] < wanted:
        return None
    return int(np.searchsorted(falling, wanted)) + 1


class Rival(NamedTuple):
    """One of several groups that compete for places: its size, its places alone, and whether its first is free."""

    size: int
    alone: int
    first_free: bool


def fewest_extra(room: Ints, rivals: Sequence[Rival], given: int = 0) -> int:
    """Return a lower bound of the extra places that groups use together.

    They compete: groups that need k places in total pay for k of them, less one for each whose first is free, because
    every place is used by at least one of them. The largest groups are counted this way, the others alone. `given` is
    the room in places that cost nothing.
    """
    falling = np.sort(room)[::-1].cumsum()
    best = alone = sum(rival.alone for rival in rivals)
    joint = -given
    free = 0
    for rival in sorted(rivals, key=lambda rival: -rival.size):
        joint += rival.size
        alone -= rival.alone
        free += rival.first_free
        places = int(np.searchsorted(falling, joint)) + 1 if joint > 0 else 0
        best = max(best, places - free + alone)
    return best


def least(keys: Sequence[Ints]) -> Ints:
    """Return the places with the smallest values by the first key, of those the smallest by the second, and so on."""
    places: Ints = np.arange(len(keys[0]))
    for key in keys:
        values = key[places]
        places = places[values == values.min()]
        if len(places) == 1:
            break
    return places


def roomiest(room: Ints, wanted: int) -> list[int]:
    """Return the fewest places that hold `wanted`, which must fit: the roomiest, and the tightest for the remainder."""
    falling = np.argsort(-room, kind="stable").tolist()
    sizes = room.tolist()
    full = 0
    while sizes[falling[full]] < wanted:
        wanted -= sizes[falling[full]]
        full += 1
    last = min((place for place in falling[full:] if sizes[place] >= wanted), key=lambda place: (sizes[place], place))
    return [*falling[:full], last]


def tightest(room: Ints, wanted: int, ties: Sequence[Ints] = ()) -> list[tuple[int, int]]:
    """Distribute `wanted` pods over the fewest places, leaving as little room as possible in the places used.

    Returns (index, pods) pairs; `wanted` must fit. Among equal places those with the smaller `ties` values go first,
    the first values first, then those with the smaller index.
    """
    usable = np.flatnonzero(room > 0)
    if ties:
        rising = usable[np.lexsort((*(values[usable] for values in reversed(ties)), room[usable]))]
    else:
        rising = usable[np.argsort(room[usable], kind="stable")]
    sizes = room[rising].tolist()
    places = rising.tolist()
    slack, count = -wanted, 0
    while slack < 0:
        if count == len(sizes):
            raise ValueError("the pods do not fit")
        count += 1
        slack += sizes[-count]
    chosen = _shrink(sizes, count, slack)
    result = []
    left = wanted
    # The fullest places are filled completely, so that the remaining room is in one place.
    for where in sorted(chosen, key=lambda where: sizes[where]):
        pods = min(left, sizes[where])
        result.append((places[where], pods))
        left -= pods
    return [pair for pair in result if pair[1] > 0]


def _shrink(sizes: list[int], count: int, slack: int) -> list[int]:
    """Return `count` indices of the ascending list `sizes`: the largest, each lowered as the slack allows."""
    taken: list[int] = []
    used: set[int] = set()
    after: dict[int, int] = {}  # the position to continue from for a start that was used before
    for top in range(len(sizes) - count, len(sizes)):
        start = bisect_left(sizes, sizes[top] - slack)
        low = after.get(start, start)
        while low in used:
            low += 1
        after[start] = low + 1
        slack -= sizes[top] - sizes[low]
        taken.append(low)
        used.add(low)
    return taken
