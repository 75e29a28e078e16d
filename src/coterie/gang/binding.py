"""A required group added around tasks anywhere in a gang's constraint tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coterie.gang.tree import Gang, Group, Path, Task
from coterie.topology.levels import Topology

_Children = tuple[tuple[Group, ...], tuple[Task, ...]]


def bound(gangs: Sequence[Gang], names: frozenset[str], level: str, topology: Topology) -> list[Gang] | None:
    """Return gangs, the others followers of the first, with the named tasks in one required group of a level.

    Groups of a coarser level among those tasks are dropped: tasks that share a domain also share the domains around it.
    None where the tasks cannot form a subtree: a part of a group with a finer preference, or tasks of several groups
    that leave out some tasks of those groups.
    """
    paths = [{group.path for group in gang.walk()} for gang in gangs]
    binding = _Binding(topology, topology.index(level), gangs[0].name, frozenset.intersection(*map(frozenset, paths)))
    found = [binding.bind(gang, names) for gang in gangs]
    return None if None in found else [gang for gang in found if gang is not None]


@dataclass(frozen=True, slots=True)
class _Binding:
    """The group to be added; enclosing groups are looked for among those that all gangs share."""

    topology: Topology
    level: int
    name: str
    shared: frozenset[Path]

    def bind(self, gang: Gang, names: frozenset[str]) -> Gang | None:
        own = names & {task.name for task in gang.all_tasks()}
        found = self._children(gang.groups, gang.tasks, (), own)
        return found and replace(gang, groups=found[0], tasks=found[1])

    def _children(
        self, groups: tuple[Group, ...], tasks: tuple[Task, ...], path: Path, names: frozenset[str]
    ) -> _Children | None:
        """Return the groups and tasks at one position of the tree, with the named ones among them bound."""
        around = next((group for group in groups if group.path in self.shared and names <= _names(group)), None)
        if around is not None:
            index = self.topology.index(around.level)
            if around.required and index >= self.level:
                return groups, tasks
            if index <= self.level:
                found = self._children(around.groups, around.tasks, around.path, names)
                if found is None:
                    return None
                changed = replace(around, groups=found[0], tasks=found[1])
                return tuple(changed if group is around else group for group in groups), tasks
        inside = [group for group in groups if not names.isdisjoint(_names(group))]
        if not all(_names(group) <= names for group in inside):
            return None
        here = (*path, (self.topology.names[self.level], self.name))
        lower, loose = self._lower(inside, here)
        members = (*(task for task in tasks if task.name in names), *loose)
        rest = tuple(group for group in groups if group not in inside)
        one = Group(here, required=True, groups=lower, tasks=members)
        return (*rest, one), tuple(task for task in tasks if task.name not in names)

    def _lower(self, groups: Iterable[Group], path: Path) -> _Children:
        """Return groups as they are below a path, and the tasks of groups of a coarser level."""
        kept: list[Group] = []
        loose: list[Task] = []
        for group in groups:
            if self.topology.index(group.level) < self.level:
                lower, tasks = self._lower(group.groups, path)
                kept += lower
                loose += (*group.tasks, *tasks)
            else:
                here = (*path, group.path[-1])
                lower, tasks = self._lower(group.groups, here)
                kept.append(replace(group, path=here, groups=lower, tasks=(*group.tasks, *tasks)))
        return tuple(kept), tuple(loose)


def _names(group: Group) -> frozenset[str]:
    return frozenset(task.name for task in group.all_tasks())
