"""Which groups of a workload can run at the same time, and what they hold at most while they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from coterie.topology.cluster import Ints

# With more ways to be at work together than this, everything is assumed to run at once: safe, if pessimistic.
MOST_SETS = 256


def ancestors(needs: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return for every group all the groups that have finished before it starts."""
    found: dict[str, frozenset[str]] = {}

    def reach(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = frozenset()  # a cycle cannot be here, and must not hang us if it is
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
    """Yield the largest sets of groups of which none waits for another."""

    def clash(one: str, other: str) -> bool:
        return one in before.get(other, ()) or other in before.get(one, ())

    def extend(chosen: list[str], candidates: Iterable[str], left_out: list[str]) -> Iterator[Sequence[str]]:
        open_ = list(candidates)
        if not open_:
            if not left_out:
                yield tuple(chosen)
            return
        passed = list(left_out)
        while open_:
            name = open_.pop(0)
            yield from extend(
                [*chosen, name],
                [other for other in open_ if not clash(name, other)],
                [other for other in passed if not clash(name, other)],
            )
            passed.append(name)

    yield from extend([], names, [])
