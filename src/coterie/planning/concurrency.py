"""The groups of a workload that can run at the same time, and their peak demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from coterie.topology.cluster import Ints

# With more possible sets than this, all groups are assumed to run at once: safe, if pessimistic.
MOST_SETS = 256


def ancestors(needs: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return, for every group, all groups that have finished before it starts."""
    found: dict[str, frozenset[str]] = {}

    def reach(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = frozenset()  # cycles are refused earlier; one must still not cause an endless loop
            direct = needs.get(name, frozenset())
            found[name] = direct.union(*(reach(other) for other in direct))
        return found[name]

    for name in needs:
        reach(name)
    return found


def peak(held: Mapping[str, Ints], before: Mapping[str, frozenset[str]]) -> Ints | None:
    """Return the most that these groups hold at any time, per resource and node; None when there are none."""
    names = list(held)
    if not names:
        return None
    sets = list(islice(_together(names, before), MOST_SETS + 1))
    if len(sets) > MOST_SETS:
        sets = [names]
    most: Ints | None = None
    for group in sets:
        total: Ints = np.sum([held[name] for name in group], axis=0)
        most = total if most is None else np.maximum(most, total)
    return most


def _together(names: Sequence[str], before: Mapping[str, frozenset[str]]) -> Iterator[Sequence[str]]:
    """Yield the maximal sets of groups of which none waits for another."""
    rivals: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        for other in before.get(name, frozenset()) & rivals.keys():
            rivals[name].add(other)
            rivals[other].add(name)
    # A group without rivals is in every set. Of the others, those already tried are in no later set.
    start = [name for name in names if not rivals[name]], [name for name in names if rivals[name]], list[str]()
    stack = [start]
    while stack:
        chosen, candidates, tried = stack.pop()
        if not candidates and not tried:
            yield chosen
        if not candidates:
            continue
        left = dict.fromkeys(candidates)
        # A set without this group has one of its rivals, else it would not be maximal.
        pivot = min((*candidates, *tried), key=lambda name: len(rivals[name] & left.keys()))
        for name in [name for name in candidates if name == pivot or name in rivals[pivot]]:
            del left[name]
            stack.append(
                (
                    [*chosen, name],
                    [other for other in left if other not in rivals[name]],
                    [other for other in tried if other not in rivals[name]],
                )
            )
            tried = [*tried, name]
