"""The notice about groups whose size leaves places in every domain that no such group can use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from coterie.errors import Notice
from coterie.gang.tree import Gang, Group, Shape
from coterie.placement.capacity import Capacity
from coterie.topology.cluster import Bools, Ints

# A group of which this many fit in a domain wastes little capacity.
_FINE_GRAINED = 4


def tiling_notices(gang: Gang, empty: Capacity) -> Iterator[Notice]:
    """Yield a notice for each size of group with which no domain can be filled, neither alone nor with the others."""
    sizes: dict[tuple[str, Shape], frozenset[int]] = {}
    done = set()
    for group, around in _walk(gang.groups):
        shapes = {task.shape for task in group.all_tasks()}
        if not group.required or len(shapes) != 1 or any(one.level == group.level for one in around):
            continue
        shape, size = shapes.pop(), _size(group)
        kind = (group.level, shape, size, around[-1:])
        if size < 2 or kind in done:
            continue
        done.add(kind)
        rooms = _rooms(shape, group.level, around, empty)
        largest = int(rooms.max(initial=0))
        if not size < largest < size * _FINE_GRAINED or _fills_parts(shape, group.level, size, rooms, empty):
            continue
        beside = sizes.setdefault((group.level, shape), _sizes(gang, group.level, shape))
        if any(_filled(beside, room) == room for room in np.unique(rooms[rooms >= size]).tolist()):
            continue
        spare = largest - _filled(beside, largest)
        yield Notice(
            "DoesNotTile",
            f"groups of {size} tasks do not fill a {group.level}, which holds {largest}: "
            f"{spare} {'place is' if spare == 1 else 'places are'} left that no other such group can use",
        )


def _walk(groups: Iterable[Group], around: tuple[Group, ...] = ()) -> Iterator[tuple[Group, tuple[Group, ...]]]:
    """Yield every group with the required groups around it, outermost first."""
    for group in groups:
        yield group, around
        yield from _walk(group.groups, (*around, group) if group.required else around)


def _size(group: Group) -> int:
    return sum(task.needed for task in group.all_tasks())


def _rooms(shape: Shape, level: str, around: Sequence[Group], empty: Capacity) -> Ints:
    """Return how many tasks the domains of a level hold, without those in which a group around has no room."""
    domains = empty.domains
    index, sums = domains.topology.index(level), empty.fit(shape).sums
    tier = domains.tiers[index]
    usable: Bools = np.ones(len(tier), dtype=bool)
    for one in around:
        above = domains.topology.index(one.level)
        alike = sum(task.needed for task in one.all_tasks() if task.shape == shape)
        usable &= (sums[above] >= alike)[domains.tiers[above].of[tier.start]]
    return np.where(usable, sums[index], 0)


def _fills_parts(shape: Shape, level: str, size: int, rooms: Ints, empty: Capacity) -> bool:
    """Return whether a group fills finer domains of the largest domain exactly, and so leaves the others whole."""
    domains = empty.domains
    index, largest = domains.topology.index(level), int(rooms.argmax())
    for finer in range(index + 1, domains.neighbourhood + 1):
        parts = empty.fit(shape).sums[finer][domains.inside(index, (largest,), finer)]
        reached = 1
        for part in parts[parts > 0].tolist():
            reached |= (reached << part) & ((2 << size) - 1)
        if reached >> size & 1:
            return True
    return False


def _sizes(gang: Gang, level: str, shape: Shape) -> frozenset[int]:
    """Return the numbers of tasks of a shape that stay together in a domain of a level; 1 for those that need not."""
    found = set()
    together = 0
    for group, around in _walk(gang.groups):
        if group.required and group.level == level and all(one.level != level for one in around):
            alike = sum(task.needed and task.shape == shape for task in group.all_tasks())
            together += alike
            found.add(alike)
    free = sum(task.needed and task.shape == shape for task in gang.all_tasks()) - together
    return frozenset(found - {0} | ({1} if free else set()))


def _filled(sizes: Iterable[int], room: int) -> int:
    """Return the most places of a domain that any numbers of groups of these sizes take."""
    reached, most = 1, (2 << room) - 1
    for size in sizes:
        step = size
        while step <= room:
            reached |= (reached << step) & most
            step *= 2
    return reached.bit_length() - 1
