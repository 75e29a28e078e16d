"""When two gangs are alike: what decides whether one fits, without the names that tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable

from coterie.gang.tree import Gang, Group, Path, Task


def kind_of(gang: Gang, named: Container[Path] = ()) -> Hashable:
    """Return a value that gangs of the same tree and shapes have in common; groups in `named` keep their names."""

    def shapes(tasks: Iterable[Task]) -> Hashable:
        return frozenset(Counter((task.shape, task.needed) for task in tasks).items())

    def forest(groups: Iterable[Group]) -> Hashable:
        return frozenset(Counter(map(tree, groups)).items())

    def tree(group: Group) -> Hashable:
        step = group.path if group.path in named else group.level
        return step, group.required, forest(group.groups), shapes(group.tasks)

    return forest(gang.groups), shapes(gang.tasks)
