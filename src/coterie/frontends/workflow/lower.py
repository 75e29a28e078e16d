"""The gangs of a valid workflow in a pool: one per group, with its dependencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from coterie.config.configuration import NO_PLATFORM, Platform, Pool
from coterie.document.durations import span
from coterie.document.located import Path
from coterie.document.repair import overlaps
from coterie.document.schema import named_fields
from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.frontends.workflow.copies import spare_tasks
from coterie.frontends.workflow.model import TaskSpec
from coterie.frontends.workflow.read import Workflow, located
from coterie.frontends.workflow.rules import WorkflowGroup, WorkflowResource, WorkflowTask, needs_of
from coterie.frontends.workflow.values import suggestion
from coterie.gang.rules import RequestedTask, TaskRequirement, build, requirement_faults
from coterie.gang.tree import Gang, Shape
from coterie.gang.tree import Path as TreePath
from coterie.topology.cluster import CPU, GPU, MEMORY, STORAGE

# The fields of a task that concern neither its name nor its placement.
_APART = named_fields(TaskSpec).keys() - {"name", "resource"}


@dataclass(frozen=True, slots=True)
class LoweredWorkflow:
    """A workflow as gangs, in file order, which is also a runnable order.

    `needs` has, for each group, the groups it waits for directly. Timeouts are in seconds and never above the pool's.
    """

    name: str
    gangs: tuple[Gang, ...]
    needs: Mapping[str, frozenset[str]]
    notices: tuple[Notice, ...]
    group_places: Mapping[str, Place]
    exec_timeout: int | None = None
    queue_timeout: int | None = None


def lower(workflow: Workflow, pool: Pool) -> LoweredWorkflow:
    """Return the gangs of a workflow in a pool; raise `SpecErrors` with every fault."""
    found = _Judged(workflow, pool)
    if found.faults:
        raise SpecErrors(located(found.faults, workflow.document))
    notices, asked = found.notices, found.asked
    gangs = tuple(build(team.name, tasks, pool.topology) for team, tasks in zip(workflow.teams, asked, strict=True))
    limits = workflow.spec.timeout
    clamped = [
        _clamp(workflow, "exec_timeout", limits.exec_timeout, pool.max_exec_timeout, pool.name),
        _clamp(workflow, "queue_timeout", limits.queue_timeout, pool.max_queue_timeout, pool.name),
    ]
    notices.extend(notice for _, notice in clamped if notice)
    notices.extend(_spanning(workflow.teams, asked, gangs, workflow))
    return LoweredWorkflow(
        name=workflow.name,
        gangs=gangs,
        needs=needs_of(workflow.teams),
        notices=(*workflow.notices, *notices),
        group_places=MappingProxyType({team.name: workflow.place((*team.path, "name")) for team in workflow.teams}),
        exec_timeout=clamped[0][0],
        queue_timeout=clamped[1][0],
    )


def pool_faults(workflow: Workflow, pool: Pool, gone: Collection[Path] = ()) -> list[Fault]:
    """Return the faults of a workflow in a pool; in a faulty file, those at the repaired paths `gone` are left out."""
    faults = _Judged(workflow, pool, gone).faults
    return located((fault for fault in faults if not overlaps(fault.path, gone)), workflow.document)


class _Judged:
    """The verdict of a pool on a workflow: faults, notices, and the requirements of each task, group by group."""

    def __init__(self, workflow: Workflow, pool: Pool, gone: Collection[Path] = ()) -> None:
        faults: dict[Fault, None] = {}
        self.notices: list[Notice] = []
        shapes: dict[str, Shape] = {}
        for name, resource in workflow.resources.items():
            platform, found = _platform(resource, pool, workflow)
            if isinstance(found, Fault):
                faults[found] = None
            elif found is not None:
                self.notices.append(found)
            shapes[name] = _shape(resource, pool, platform)
        shapes.setdefault("default", _shape(None, pool, NO_PLATFORM))
        spare = spare_tasks(workflow.teams)
        lists = {name: _listed(resource) for name, resource in workflow.resources.items()}
        self.asked = [
            [_asked(member, lists, shapes, spare=member.name in spare) for member in team.members]
            for team in workflow.teams
        ]
        # A repaired value does not show whether it agrees with other tasks.
        known = [
            [
                task
                for member, task in zip(team.members, tasks, strict=True)
                if not (_changed(member.path, gone) or overlaps(task.where, gone))
            ]
            for team, tasks in zip(workflow.teams, self.asked, strict=True)
        ]
        # A resource spec that no task uses is judged as well, since it is part of the file.
        faults.update(dict.fromkeys(requirement_faults(known, pool.topology, lists.values())))
        self.faults = list(faults)


def _changed(task: Path, gone: Iterable[Path]) -> bool:
    """Return whether a repair may have changed a task's name or resource; an unknown field may be either."""
    depth = len(task)
    return any(path[:depth] == task and (*path, "")[depth] not in _APART for path in gone)


def _platform(resource: WorkflowResource, pool: Pool, workflow: Workflow) -> tuple[Platform, Fault | Notice | None]:
    name = resource.spec.platform
    path = (*resource.path, "platform")
    if name is None:
        return NO_PLATFORM, None
    if not pool.platforms:
        message = f'platform is ignored: pool "{pool.name}" has no platforms'
        return NO_PLATFORM, Notice("FieldIgnored", message, workflow.place(path, key=True), path)
    if name not in pool.platforms:
        message = f'pool "{pool.name}" has no platform "{name}"'
        return NO_PLATFORM, Fault(message, path=path, hint=suggestion(name, list(pool.platforms)))
    return pool.platforms[name], None


def _shape(resource: WorkflowResource | None, pool: Pool, platform: Platform) -> Shape:
    amounts = Counter(dict(pool.sidecar_requests))
    if resource is None:
        return pool.admitted(Shape(tuple(sorted(amounts.items()))), platform)
    spec = resource.spec
    amounts.update({CPU: spec.cpu * 1000, GPU: spec.gpu, MEMORY: spec.memory, STORAGE: spec.storage})
    requests = tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))
    return pool.admitted(Shape(requests, excluded=frozenset(spec.nodes_excluded)), platform)


def _asked(
    member: WorkflowTask, lists: Mapping[str, RequestedTask], shapes: Mapping[str, Shape], *, spare: bool
) -> RequestedTask:
    listed = lists.get(member.spec.resource)
    if listed is None:
        return RequestedTask(member.name, shapes["default"], where=member.path, spare=spare)
    return RequestedTask(member.name, shapes[member.spec.resource], listed.requirements, listed.where, spare)


def _listed(resource: WorkflowResource) -> RequestedTask:
    """Return the requirements of a resource spec, with their place, without a task."""
    requirements = tuple(
        TaskRequirement(entry.key, entry.group, entry.requirement_type == "required")
        for entry in resource.spec.topology
    )
    return RequestedTask("", Shape(), requirements, (*resource.path, "topology"))


def _clamp(
    workflow: Workflow, name: str, wanted: int | None, most: int | None, pool: str
) -> tuple[int | None, Notice | None]:
    if wanted is None or most is None or wanted <= most:
        return (most if wanted is None else wanted), None
    path: Path = ("workflow", "timeout", name)
    message = f'{name} {span(wanted)} is more than pool "{pool}" allows; {span(most)} applies'
    return most, Notice("TimeoutClamped", message, workflow.place(path), path)


def _spanning(
    teams: Sequence[WorkflowGroup], asked: Sequence[Sequence[RequestedTask]], gangs: Sequence[Gang], workflow: Workflow
) -> Iterator[Notice]:
    """Yield warnings of topology groups that several workflow groups use: each of these is placed on its own."""
    users: dict[TreePath, list[int]] = {}
    for index, gang in enumerate(gangs):
        for node in gang.walk():
            users.setdefault(node.path, []).append(index)
    for path, found in users.items():
        if len(found) < 2:
            continue
        key, group = path[-1]
        names = [f'"{teams[index].name}"' for index in found]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        plain = " Put tasks that belong together into one group under groups." if teams[found[0]].plain else ""
        message = (
            f'{key} group "{group}" is used by {len(names)} workflow groups ({listed}), '
            f"which are placed separately and may land in different domains.{plain}"
        )
        where = _entry(asked[found[1]], key, group)
        yield Notice("GroupSpansGangs", message, workflow.place(where), where)


def _entry(tasks: Sequence[RequestedTask], key: str, group: str) -> Path:
    return next(
        (*task.where, number)
        for task in tasks
        for number, requirement in enumerate(task.requirements)
        if (requirement.key, requirement.group) == (key, group)
    )
