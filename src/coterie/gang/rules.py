"""From lists of requirements to a constraint tree, and every rule such lists must keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coterie.errors import Fault, Reason, did_you_mean
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.topology.levels import Topology

_GROUP_NAME = re.compile(r"[A-Za-z0-9._-]{1,63}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of a task's topology list: share a domain at `key` with the tasks of the same `group`."""

    key: str
    group: str = "default"
    required: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A task as a front end read it. `where` is the path of its requirement list in the user's document."""

    name: str
    shape: Shape
    requirements: tuple[Requirement, ...] = ()
    where: tuple[str | int, ...] = ()


def requirement_faults(tasks: Sequence[Asked], topology: Topology) -> list[Fault]:
    """Return every breach of the tree rules by the tasks of one workload; an empty list means `build` will work."""
    faults: dict[Fault, None] = {}
    for task in tasks:
        faults.update(dict.fromkeys(_own_faults(task, topology)))
    if not faults:
        faults.update(dict.fromkeys(_differing_keys(tasks, topology)))
    if not faults:
        faults.update(dict.fromkeys(_contradictions(tasks, topology)))
    return list(faults)


def build(name: str, tasks: Sequence[Asked], topology: Topology) -> Gang:
    """Build the tree of one gang from tasks whose requirements have no faults."""
    leaves = [(_sorted(task, topology), Task(task.name, task.shape, rank)) for rank, task in enumerate(tasks)]
    free = tuple(task for requirements, task in leaves if not requirements)
    return Gang(name, _branch((), [leaf for leaf in leaves if leaf[0]]), free)


def _branch(parent: Path, leaves: Sequence[tuple[tuple[Requirement, ...], Task]]) -> tuple[Group, ...]:
    depth = len(parent)
    branches: dict[Path, list[tuple[tuple[Requirement, ...], Task]]] = {}
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


def _sorted(task: Asked, topology: Topology) -> tuple[Requirement, ...]:
    return tuple(sorted(task.requirements, key=lambda requirement: topology.index(requirement.key)))


def _own_faults(task: Asked, topology: Topology) -> Iterable[Fault]:
    if task.requirements and not topology.levels:
        yield Fault(
            "this pool has no topology keys, so tasks cannot have topology requirements",
            code=Reason.UNKNOWN_LEVEL,
            path=task.where,
            hint="Give the pool topology_keys, or name another with --pool; without a pool, pass --levels rack=LABEL.",
        )
        return
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


def _differing_keys(tasks: Sequence[Asked], topology: Topology) -> Iterable[Fault]:
    constrained = [task for task in tasks if task.requirements]
    for task in constrained[1:]:
        first = constrained[0]
        ours, theirs = ({requirement.key for requirement in one.requirements} for one in (task, first))
        if ours != theirs:
            mine, others = (", ".join(key for key in topology.names if key in keys) for keys in (ours, theirs))
            yield Fault(
                f'task "{task.name}" uses topology keys {mine}, but task "{first.name}" uses {others}',
                path=task.where,
                hint="All tasks with topology requirements must use the same set of keys.",
            )
            return


def _contradictions(tasks: Sequence[Asked], topology: Topology) -> Iterable[Fault]:
    kinds: dict[Path, tuple[bool, Asked]] = {}
    for task in tasks:
        path: Path = ()
        for requirement in _sorted(task, topology):
            path = (*path, (requirement.key, requirement.group))
            required, first = kinds.setdefault(path, (requirement.required, task))
            if required != requirement.required:
                words = ("required", "preferred") if required else ("preferred", "required")
                yield Fault(
                    f'{requirement.key} group "{requirement.group}" is {words[0]} for task "{first.name}" '
                    f'and {words[1]} for task "{task.name}"',
                    path=(*task.where, task.requirements.index(requirement), "requirementType"),
                    hint="Tasks of one group share one requirementType; give one of them another group name.",
                )
