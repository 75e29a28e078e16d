"""The compilation of requirement lists to a constraint tree, and every rule that such lists must obey."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coterie.errors import Fault, Hint, Reason, did_you_mean
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.topology.levels import Topology

# The path of an entry in a requirement list, and whether it is required.
Entry = tuple[tuple[str | int, ...], bool]

_GROUP_NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")


@dataclass(frozen=True, slots=True)
class TaskRequirement:
    """One entry of a task's topology list: share a domain at `key` with the tasks of the same `group`."""

    key: str
    group: str = "default"
    required: bool = True


@dataclass(frozen=True, slots=True)
class RequestedTask:
    """A task as a front end read it; `spare` has the meaning it has in `Task`.

    `where` is the path of its requirement list in the user's document.
    """

    name: str
    shape: Shape
    requirements: tuple[TaskRequirement, ...] = ()
    where: tuple[str | int, ...] = ()
    spare: bool = True


def requirement_faults(
    gangs: Sequence[Sequence[RequestedTask]], topology: Topology, lists: Iterable[RequestedTask] = ()
) -> list[Fault]:
    """Return each breach of the tree rules by the gangs of a workload once; `build` succeeds where there is none.

    Every requirement list is checked by itself, including `lists` that no task uses. Tasks without a fault of their own
    are then compared: all of them use the same keys, and within one gang a group is either required or preferred.
    """
    constrained = [[task for task in tasks if task.requirements] for tasks in gangs]
    given = [one for one in (*lists, *(task for tasks in constrained for task in tasks)) if one.requirements]
    if given and not topology.levels:
        return [_no_levels(given[0])]
    own = {one: list(_own_faults(one, topology)) for one in given}
    faults = dict.fromkeys(fault for found in own.values() for fault in found)
    sound = [[task for task in tasks if not own[task]] for tasks in constrained]
    faults.update(dict.fromkeys(_differing_keys([task for tasks in sound for task in tasks], topology)))
    return [*faults, *_contradictions(sound, topology)]


def build(name: str, tasks: Sequence[RequestedTask], topology: Topology) -> Gang:
    """Build the tree of one gang from tasks whose requirements have no faults."""
    leaves = [
        (_sorted(task, topology), Task(task.name, task.shape, rank, spare=task.spare))
        for rank, task in enumerate(tasks)
    ]
    free = tuple(task for requirements, task in leaves if not requirements)
    return Gang(name, _branch((), [leaf for leaf in leaves if leaf[0]]), free)


def _branch(parent: Path, leaves: Sequence[tuple[tuple[TaskRequirement, ...], Task]]) -> tuple[Group, ...]:
    depth = len(parent)
    branches: dict[Path, list[tuple[tuple[TaskRequirement, ...], Task]]] = {}
    for requirements, task in leaves:
        step = requirements[depth]
        branches.setdefault((*parent, (step.key, step.group)), []).append((requirements, task))
    return tuple(
        Group(
            path=path,
            required=members[0][0][depth].required,
            groups=_branch(path, [leaf for leaf in members if len(leaf[0]) > depth + 1]),
            tasks=tuple(task for requirements, task in members if len(requirements) == depth + 1),
        )
        for path, members in branches.items()
    )


def _sorted(task: RequestedTask, topology: Topology) -> tuple[TaskRequirement, ...]:
    return tuple(sorted(task.requirements, key=lambda requirement: topology.index(requirement.key)))


def _no_levels(task: RequestedTask) -> Fault:
    return Fault(
        "this pool has no topology keys, so tasks cannot have topology requirements",
        code=Reason.UNKNOWN_LEVEL,
        path=task.where,
        hint=Hint(
            "Give the pool topology_keys, or name another with --pool; without a pool, pass --levels rack=LABEL.",
            "--pool",
        ),
    )


def _own_faults(task: RequestedTask, topology: Topology) -> Iterable[Fault]:
    seen: set[str] = set()
    for index, requirement in enumerate(task.requirements):
        path = (*task.where, index)
        if requirement.key not in topology.names:
            yield Fault(
                f'the pool has no topology key "{requirement.key}"',
                code=Reason.UNKNOWN_LEVEL,
                path=(*path, "key"),
                hint=f"Keys are: {', '.join(topology.names)}. {did_you_mean(requirement.key, topology.names)}".strip(),
            )
        elif requirement.key in seen:
            yield Fault(
                f'topology key "{requirement.key}" is listed twice for the same task',
                path=(*path, "key"),
                hint="Keep one entry per key; use group names to tell tasks apart.",
            )
        seen.add(requirement.key)
        if not _GROUP_NAME.fullmatch(requirement.group):
            yield Fault(
                f'topology group name "{requirement.group}" is not 1 to 63 letters, digits, ".", "_" or "-"',
                path=(*path, "group"),
                hint="Example: model-1",
            )


def _differing_keys(tasks: Sequence[RequestedTask], topology: Topology) -> Iterable[Fault]:
    for task in tasks[1:]:
        first = tasks[0]
        ours, theirs = (_keys(one) for one in (task, first))
        if ours != theirs:
            mine, others = (", ".join(key for key in topology.names if key in keys) for keys in (ours, theirs))
            yield Fault(
                f'task "{task.name}" uses topology keys {mine}, but task "{first.name}" uses {others}',
                path=task.where,
                hint="All tasks with topology requirements must use the same set of keys.",
            )
            return


def _keys(task: RequestedTask) -> frozenset[str]:
    return frozenset(requirement.key for requirement in task.requirements)


def _contradictions(gangs: Iterable[Sequence[RequestedTask]], topology: Topology) -> Iterable[Fault]:
    """Yield groups of one gang that are both required and preferred, one fault per pair of list entries."""
    found: dict[tuple[Path, Entry, Entry], tuple[list[str], list[str]]] = {}
    for tasks in gangs:
        # Tasks with inconsistent keys are not in the groups the user intends; that fault is reported already.
        for keys in dict.fromkeys(map(_keys, tasks)):
            for path, users in _users([task for task in tasks if _keys(task) == keys], topology).items():
                (entry, _), *_ = users
                other = next((each for each, _ in users if each[1] != entry[1]), None)
                if other is None:
                    continue
                said = found.setdefault((path, entry, other), ([], []))
                for each, name in users:
                    said[each[1] != entry[1]].append(name)
    for (path, (_, required), (where, _)), names in found.items():
        (level, group), words = path[-1], ("required", "preferred") if required else ("preferred", "required")
        first, second = (f"{word} for {_tasks(some)}" for word, some in zip(words, names, strict=True))
        yield Fault(
            f'{level} group "{group}" is {first} and {second}',
            path=(*where, "requirementType"),
            hint="Tasks of one group share one requirementType; give one of them another group name.",
        )


def _users(tasks: Iterable[RequestedTask], topology: Topology) -> dict[Path, list[tuple[Entry, str]]]:
    """Return, for every group of a gang, its tasks by name, each with the entry that assigns it to the group."""
    found: dict[Path, list[tuple[Entry, str]]] = {}
    for task in tasks:
        path: Path = ()
        for requirement in _sorted(task, topology):
            path = (*path, (requirement.key, requirement.group))
            entry = (*task.where, task.requirements.index(requirement)), requirement.required
            found.setdefault(path, []).append((entry, task.name))
    return found


def _tasks(names: Sequence[str]) -> str:
    more = len(names) - 1
    others = f" and {more} other{'s' if more > 1 else ''}" if more else ""
    return f'task "{names[0]}"{others}'
