"""Smaller runs of a gang: the task counts with which it is still complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from coterie.gang.tree import Gang, Group, Path, Shape, Task

_Kind = frozenset[tuple[tuple[Shape, bool], int]]


def sizes(gang: Gang, path: Path, running: Container[str] = ()) -> tuple[Path, list[int]]:
    """Return the part of a gang that may shrink, as the path of a group or () for all, and its possible task counts.

    That is the group at `path`; but one of several equal sibling groups never shrinks alone: then it is their parent,
    and whole groups are left out, never a part of one. The first tasks are kept, and the tasks left out must be spare
    copies of those. Running tasks are never left out to make the rest fit. The counts come in ascending order.
    """
    path, groups, inside = _scope(gang, path)
    needed = sorted((task for task in inside if task.needed), key=lambda task: task.rank)
    if any(task.name in running for task in needed):
        return path, []
    counts = _counts(needed, groups if len(groups) > 1 else ())
    return (() if len(inside) == len(gang.all_tasks()) else path), counts


def _scope(gang: Gang, path: Path) -> tuple[Path, Sequence[Group], tuple[Task, ...]]:
    """Return the path of the part that may shrink, the groups it consists of, and all its tasks."""
    around: Path = ()
    groups, own, inside = gang.groups, gang.tasks, gang.all_tasks()
    while groups:
        at = next((group for group in groups if path[: len(group.path)] == group.path), None)
        if at is None and len(groups) == 1 and not own:
            at = groups[0]  # the only group
        if at is None or any(group is not at and _kind(group) == _kind(at) for group in groups):
            break
        around, groups, own, inside = at.path, at.groups, at.tasks, tuple(at.all_tasks())
    return around, groups, inside


def _counts(tasks: Sequence[Task], blocks: Sequence[Group]) -> list[int]:
    """Return how many of the first tasks form a smaller run; each block is kept or left out as a whole."""
    block = {task.name: number for number, group in enumerate(blocks) for task in group.all_tasks()}
    whole = Counter(block[task.name] for task in tasks if task.name in block)
    kinds = [_kind(group) for group in blocks]
    left, shapes = Counter(kinds), Counter(task.shape for task in tasks)
    gone: Counter[int] = Counter()
    counts: list[int] = []
    for count in range(len(tasks) - 1, 0, -1):
        task = tasks[count]
        shapes[task.shape] -= 1
        if not task.spare or not shapes[task.shape] or (blocks and task.name not in block):
            break
        if blocks:
            number = block[task.name]
            gone[number] += 1
            if gone[number] == whole[number]:
                del gone[number]
                left[kinds[number]] -= 1
                if not left[kinds[number]]:
                    break
        if not gone:
            counts.append(count)
    return counts[::-1]


def _kind(group: Group) -> _Kind:
    return frozenset(Counter((task.shape, task.needed) for task in group.all_tasks()).items())
