"""Equivalence of gangs: the properties that decide whether a gang fits, without its names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping

from coterie.gang.tree import Gang, Group, Path, Task


def kind_of(gang: Gang, named: Container[Path] = (), anchors: Mapping[str, str] | None = None) -> Hashable:
    """Return a value that is equal for gangs of the same tree and shapes, which fit alike next to the same other gangs.

    Groups in `named` keep their names, because other gangs share them. Tasks in `anchors` already run on the given
    node; of these only their position in the tree counts, not their names.
    """
    at = anchors or {}

    def shapes(tasks: Iterable[Task]) -> Hashable:
        return frozenset(Counter((task.shape, task.needed, at.get(task.name)) for task in tasks).items())

    def forest(groups: Iterable[Group]) -> Hashable:
        return frozenset(Counter(map(tree, groups)).items())

    def tree(group: Group) -> Hashable:
        step = group.path if group.path in named else group.level
        return step, group.required, forest(group.groups), shapes(group.tasks)

    return forest(gang.groups), shapes(gang.tasks)
