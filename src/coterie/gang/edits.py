"""Modified copies of a gang, used to search for remedies when a gang does not fit."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from coterie.gang.tree import Gang, Group, Path, Shape, Task, Toleration
from coterie.topology.levels import Topology


def unconstrained(gang: Gang) -> Gang:
    """Return the gang without any topology constraint."""
    return replace(gang, groups=(), tasks=gang.all_tasks())


def only(gang: Gang, groups: Iterable[Group], tasks: tuple[Task, ...] = ()) -> Gang:
    """Return a gang with only these groups and tasks."""
    return replace(gang, groups=tuple(groups), tasks=tasks)


def flat(group: Group) -> Group:
    """Return a group without the finer constraints below it."""
    return replace(group, groups=(), tasks=tuple(sorted(group.all_tasks(), key=lambda task: task.rank)))


def prefer(gang: Gang, level: str) -> Gang:
    """Return the gang with every required group of a level made preferred."""
    return _map(gang, lambda group: replace(group, required=False) if group.level == level else group)


def coarsen(gang: Gang, level: str, topology: Topology) -> Gang | None:
    """Return the gang with the groups of a level moved to the next coarser one; None if there is no coarser level.

    A group inside one of the coarser level is dissolved where that one asks for no less, so nothing required is lost.
    """
    index = topology.index(level)
    if index == 0:
        return None
    coarser = topology.names[index - 1]

    def moved(groups: tuple[Group, ...], parent: Group | None) -> tuple[tuple[Group, ...], tuple[Task, ...]]:
        result: list[Group] = []
        loose: list[Task] = []
        for group in groups:
            inner, tasks = moved(group.groups, group)
            changed = replace(group, groups=inner, tasks=(*group.tasks, *tasks))
            if group.level != level:
                result.append(changed)
            elif parent and parent.level == coarser and (parent.required or not group.required):
                # The group above already asks for one domain of that level for these tasks.
                result.extend(changed.groups)
                loose.extend(changed.tasks)
            else:
                result.append(replace(changed, path=(*group.path[:-1], (coarser, group.path[-1][1]))))
        return tuple(result), tuple(loose)

    groups, tasks = moved(gang.groups, None)
    return replace(gang, groups=groups, tasks=(*gang.tasks, *tasks))


def keep(gang: Gang, path: Path, count: int) -> Gang:
    """Return the gang with only the first `count` needed tasks of one group, or of the whole gang for an empty path."""
    inside = [task for task in (gang.all_tasks() if not path else _find(gang, path)) if task.needed]
    dropped = {task.name for task in sorted(inside, key=lambda task: task.rank)[count:]}
    return _filter(gang, lambda task: task.name not in dropped)


def chosen(gang: Gang, names: Container[str]) -> Gang:
    """Return the gang with all needed tasks and only the named ones of the others."""
    if all(task.needed or task.name in names for task in gang.all_tasks()):
        return gang  # the same object, so that its compiled form is reused
    return _filter(gang, lambda task: task.needed or task.name in names)


def joined(gangs: Sequence[Gang]) -> Gang:
    """Return several gangs as one, named after the first; groups with the same path are merged."""
    if len(gangs) == 1:
        return gangs[0]
    ranked: list[Gang] = []
    start = 0
    for gang in gangs:
        ranked.append(mapped(gang, lambda task, start=start: replace(task, rank=start + task.rank)))  # type: ignore[misc]
        start += len(gang.all_tasks())
    tasks = tuple(task for gang in ranked for task in gang.tasks)
    return Gang(gangs[0].name, _united(group for gang in ranked for group in gang.groups), tasks)


def set_apart(gang: Gang, mark: str) -> Gang:
    """Return the gang with a mark in the path of every group, so that no group is merged with one of another gang."""

    def marked(group: Group) -> Group:
        (level, name), *rest = group.path
        return replace(group, path=((level, f"{mark}/{name}"), *rest))

    return _map(gang, marked)


def only_tasks(gang: Gang, names: Container[str]) -> Gang:
    """Return the gang with these tasks only; groups left without tasks are dropped."""
    return _filter(gang, lambda task: task.name in names)


def without_nodes(gang: Gang, nodes: Iterable[str]) -> Gang:
    """Return the gang with some nodes excluded for every task."""
    gone = frozenset(nodes)
    if not gone:
        return gang
    shapes: dict[Shape, Shape] = {}

    def spared(task: Task) -> Task:
        shape = shapes.setdefault(task.shape, replace(task.shape, excluded=task.shape.excluded | gone))
        return replace(task, shape=shape)

    return mapped(gang, spared)


def pinned(gang: Gang, labels: Mapping[str, Mapping[str, str]]) -> Gang:
    """Return the gang with tasks restricted to nodes of these labels, which replace its required groups."""

    def restricted(task: Task) -> Task:
        selector = {**dict(task.shape.selector), **labels.get(task.name, {})}
        return replace(task, shape=replace(task.shape, selector=tuple(sorted(selector.items()))))

    groups, tasks = _preferred(gang.groups)
    return mapped(replace(gang, groups=groups, tasks=(*gang.tasks, *tasks)), restricted)


def _preferred(groups: Iterable[Group]) -> tuple[tuple[Group, ...], tuple[Task, ...]]:
    """Return groups without the required ones among them and below, and the tasks that are then in no group."""
    kept: list[Group] = []
    loose: list[Task] = []
    for group in groups:
        below, tasks = _preferred(group.groups)
        if group.required:
            kept.extend(below)
            loose.extend((*group.tasks, *tasks))
        else:
            kept.append(replace(group, groups=below, tasks=(*group.tasks, *tasks)))
    return tuple(kept), tuple(loose)


def without_exclusions(gang: Gang) -> Gang:
    """Return the gang with no node excluded by the user."""
    return mapped(gang, lambda task: replace(task, shape=replace(task.shape, excluded=frozenset())))


def tolerating(gang: Gang, keys: Iterable[str]) -> Gang:
    """Return the gang with every task tolerating all taints of some keys, of any value and effect."""
    added = tuple(Toleration(key, "Exists") for key in keys)
    shapes: dict[Shape, Shape] = {}

    def tolerant(task: Task) -> Task:
        wider = replace(task.shape, tolerations=tuple(dict.fromkeys((*task.shape.tolerations, *added))))
        return replace(task, shape=shapes.setdefault(task.shape, wider))

    return mapped(gang, tolerant)


def _united(groups: Iterable[Group]) -> tuple[Group, ...]:
    by_path: dict[Path, list[Group]] = {}
    for group in groups:
        by_path.setdefault(group.path, []).append(group)
    return tuple(
        replace(
            same[0],
            groups=_united(below for group in same for below in group.groups),
            tasks=tuple(task for group in same for task in group.tasks),
        )
        for same in by_path.values()
    )


def _find(gang: Gang, path: Path) -> tuple[Task, ...]:
    for group in gang.walk():
        if group.path == path:
            return tuple(group.all_tasks())
    raise LookupError(path)


def _map(gang: Gang, change: Callable[[Group], Group]) -> Gang:
    def descend(group: Group) -> Group:
        return change(replace(group, groups=tuple(map(descend, group.groups))))

    return replace(gang, groups=tuple(map(descend, gang.groups)))


def mapped(gang: Gang, change: Callable[[Task], Task]) -> Gang:
    """Return the gang with every task changed."""
    changed = _map(gang, lambda group: replace(group, tasks=tuple(map(change, group.tasks))))
    return replace(changed, tasks=tuple(map(change, gang.tasks)))


def _filter(gang: Gang, wanted: Callable[[Task], bool]) -> Gang:
    def descend(groups: tuple[Group, ...]) -> tuple[Group, ...]:
        kept = (
            replace(group, groups=descend(group.groups), tasks=tuple(filter(wanted, group.tasks))) for group in groups
        )
        return tuple(group for group in kept if group.groups or group.tasks)

    return replace(gang, groups=descend(gang.groups), tasks=tuple(filter(wanted, gang.tasks)))
