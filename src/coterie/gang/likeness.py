"""Likeness of gangs: what decides whether one fits, without the names that tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping

from coterie.gang.tree import Gang, Group, Path, Task


def kind_of(gang: Gang, named: Container[Path] = (), anchors: Mapping[str, str] | None = None) -> Hashable:
    """Return a value that gangs of the same tree and shapes have in common: beside the same others, they fit alike.

    Groups in `named` keep their names: those that others share. Tasks in `anchors` already run on the named node, and
    what matters of them is where in the tree that is, not what they are called.
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
