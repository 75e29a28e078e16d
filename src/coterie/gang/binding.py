"""Tasks bound into one required group of a gang's tree, wherever in it they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coterie.gang.tree import Gang, Group, Path, Task
from coterie.topology.levels import Topology

_Children = tuple[tuple[Group, ...], tuple[Task, ...]]


def bound(gangs: Sequence[Gang], names: frozenset[str], level: str, topology: Topology) -> list[Gang] | None:
    """Return gangs, of which the others follow the first, with some of their tasks in one required group of a level.

    Groups among them of a coarser level are dropped: what shares a domain shares those around it. None where the tasks
    are no part of the tree: some of a group with a finer preference, or of several groups without all of their tasks.
    """
    paths = [{group.path for group in gang.walk()} for gang in gangs]
    binding = _Binding(topology, topology.index(level), gangs[0].name, frozenset.intersection(*map(frozenset, paths)))
    found = [binding.bind(gang, names) for gang in gangs]
    return None if None in found else [gang for gang in found if gang is not None]


@dataclass(frozen=True, slots=True)
class _Binding:
    """The group to be made; groups around it are looked for among those that all gangs have."""

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
        """Return the groups and tasks at a place of the tree, with the named ones among them bound."""
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
        """Return groups as they stand below a path, and the tasks of those that are of a coarser level."""
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
