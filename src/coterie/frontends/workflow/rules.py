"""The rules between fields of a workflow: names, leads, resources, inputs, paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType

from coterie.document.located import Path
from coterie.document.schema import MOST_FAULTS, said
from coterie.errors import Fault
from coterie.frontends.workflow.model import GroupSpec, ResourceSpec, TaskInput, TaskSpec, WorkflowFile
from coterie.frontends.workflow.values import container_path, normalized_name, suggestion


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task, and its path in the file."""

    spec: TaskSpec
    path: Path

    @property
    def name(self) -> str:
        """The task's name."""
        return self.spec.name


@dataclass(frozen=True, slots=True)
class WorkflowGroup:
    """A group of the workflow, written as one or made from a plain task."""

    spec: GroupSpec
    path: Path
    members: tuple[WorkflowTask, ...]
    plain: bool = False

    @property
    def name(self) -> str:
        """The group's name."""
        return self.spec.name

    @property
    def lead(self) -> str:
        """The task that decides when the group is done."""
        return next((member.name for member in self.members if member.spec.lead), self.members[0].name)


@dataclass(frozen=True, slots=True)
class WorkflowResource:
    """A resource spec, and its path in the file."""

    spec: ResourceSpec
    path: Path


def groups_of(file: WorkflowFile) -> tuple[WorkflowGroup, ...]:
    """Return the groups in file order; each plain task becomes the group `<task>-group`."""
    flow = file.workflow
    if flow.groups is not None:
        return tuple(
            WorkflowGroup(
                group,
                path := ("workflow", "groups", index),
                tuple(WorkflowTask(task, (*path, "tasks", place)) for place, task in enumerate(group.tasks)),
            )
            for index, group in enumerate(flow.groups)
        )
    return tuple(
        WorkflowGroup(
            GroupSpec.model_construct(
                name=f"{task.name}-group", barrier=True, ignore_nonlead_status=True, tasks=(task,)
            ),
            path := ("workflow", "tasks", index),
            (WorkflowTask(task, path),),
            plain=True,
        )
        for index, task in enumerate(flow.tasks or ())
    )


def resources_of(file: WorkflowFile) -> Mapping[str, WorkflowResource]:
    """Return every resource spec by name, from `workflow` and from the top level."""
    inner = {
        name: WorkflowResource(spec, ("workflow", "resources", name)) for name, spec in file.workflow.resources.items()
    }
    outer = {name: WorkflowResource(spec, ("resources", name)) for name, spec in file.resources.items()}
    return MappingProxyType({**outer, **inner})


def workflow_faults(file: WorkflowFile, further: Iterable[Fault] = ()) -> list[Fault]:
    """Return every breach and then the `further` faults, up to a limit; they have paths, and no places yet."""
    teams = groups_of(file)
    members = [member for team in teams for member in team.members]
    found = chain(
        _shape(file),
        _names(teams),
        _leads(teams),
        _resources(file, teams),
        _inputs(teams),
        *map(_files, members),
        *map(_mounts, members),
        further,
    )
    faults = list(islice(found, MOST_FAULTS))
    if next(found, None) is not None:
        faults.append(
            Fault(
                f"only the first {MOST_FAULTS} faults are shown",
                hint="Fix these to see the others.",
                path=faults[-1].path,
            )
        )
    return faults


def _shape(file: WorkflowFile) -> Iterator[Fault]:
    flow = file.workflow
    if flow.groups is not None and flow.tasks is not None:
        yield Fault(
            "a workflow has either groups or tasks, not both",
            path=("workflow", "tasks"),
            hint="Move the tasks into a group, or the groups' tasks into tasks.",
        )
    elif not flow.groups and not flow.tasks:
        yield Fault(
            "the workflow has no tasks",
            path=("workflow",),
            hint="List them under workflow.tasks, or under workflow.groups if they start together.",
        )
    if "default_values" in file.model_fields_set:
        yield Fault(
            "default-values must be a section of its own",
            path=("default-values",),
            hint="Write default-values: in column one, with its values indented below.",
        )


def _names(teams: Sequence[WorkflowGroup]) -> Iterator[Fault]:
    # The group of a plain task has no path of its own, and cannot clash unless the tasks do.
    groups = [(team.name, team.path) for team in teams if not team.plain]
    tasks = [(member.name, member.path) for team in teams for member in team.members]
    for kind, found in (("groups", groups), ("tasks", tasks)):
        seen: dict[str, str] = {}
        for name, path in found:
            if (first := seen.get(normalized_name(name))) is None:
                seen[normalized_name(name)] = name
                continue
            why = "" if first == name else f' ("{first}" and "{name}" differ only by case, "_" or "-")'
            yield Fault(f'two {kind} have the name "{name}"{why}', path=(*path, "name"), hint="Rename one of them.")


def _leads(teams: Iterable[WorkflowGroup]) -> Iterator[Fault]:
    for team in teams:
        leads = [member for member in team.members if member.spec.lead]
        if len(team.members) > 1 and not leads:
            yield Fault(
                f'group "{team.name}" has no lead task',
                path=(*team.path, "name"),
                hint="Write lead: true on the task that decides when the group is done.",
            )
        for extra in leads[1:]:
            yield Fault(
                f'group "{team.name}" has two lead tasks, "{leads[0].name}" and "{extra.name}"',
                path=(*extra.path, "lead"),
                hint="Keep lead: true on one of them.",
            )


def _resources(file: WorkflowFile, teams: Iterable[WorkflowGroup]) -> Iterator[Fault]:
    known = resources_of(file)
    for name in file.resources:
        if name in file.workflow.resources:
            yield Fault(
                f'resource "{name}" is given both under workflow and at the top level',
                path=("resources", name),
                hint="Keep one of the two.",
            )
    for team in teams:
        for member in team.members:
            name = member.spec.resource
            if name not in known and name != "default":
                yield Fault(
                    f'task "{member.name}" uses the resource "{name}", which is not defined',
                    path=(*member.path, "resource"),
                    hint=suggestion(name, list(known)),
                )


def _inputs(teams: Sequence[WorkflowGroup]) -> Iterator[Fault]:
    order = {member.name: index for index, team in enumerate(teams) for member in team.members}
    waits = _waits(teams, order)
    for member in (member for team in teams for member in team.members):
        for number, entry in enumerate(member.spec.inputs):
            path = (*member.path, "inputs", number)
            if (entry.task is None) == (entry.url is None):
                yield Fault("an input has either a task or a url", path=path, hint="Example: - task: preprocess")
            elif entry.task is not None and not elsewhere(entry):
                message, hint = _input(member.name, entry.task, order, waits)
                if message:
                    yield Fault(f'task "{member.name}" has {message}', path=(*path, "task"), hint=hint)


def _input(task: str, source: str, order: Mapping[str, int], waits: Mapping[int, set[int]]) -> tuple[str, str]:
    """Return the fault and the hint for one task as the input of another; empty when it is valid."""
    if source == task:
        return "itself as input", "Name a task of an earlier group."
    if source not in order:
        return f'the unknown task "{source}" as input', suggestion(source, [name for name in order if name != task])
    here, there = order[task], order[source]
    if there == here:
        hint = "The tasks of a group run at the same time; put the earlier one in a group of its own."
        return f'"{source}" as input, which starts together with it', hint
    if there > here and here in _reach(there, waits):
        hint = "The inputs form a cycle; remove one of them."
        return f'"{source}" as input, which itself waits for this group', hint
    if there > here:
        hint = "Groups are listed in the order in which they run; move that one before this one."
        return f'"{source}" as input, which is defined later', hint
    return "", ""


def _files(member: WorkflowTask) -> Iterator[Fault]:
    paths = [container_path(file.path) for file in member.spec.files]
    folders = {above: path for path in paths for above in _folders(path)}
    seen: set[str] = set()
    for index, path in enumerate(paths):
        where = (*member.path, "files", index, "path")
        if path in seen:
            yield Fault(f"{said(path)} is written twice", path=where, hint="Keep one of the two.")
        elif path in folders:
            message = f"{said(path)} is used both as a file and as a folder of the file {said(folders[path])}"
            yield Fault(message, path=where, hint="Choose another path for one of them.")
        seen.add(path)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders above a path, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


def _mounts(member: WorkflowTask) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, mount in enumerate(member.spec.volume_mounts):
        target = mount.rpartition(":")[2]
        if target in seen:
            where = (*member.path, "volumeMounts", index)
            yield Fault(f"{said(target)} is mounted over twice", path=where, hint="Keep one of the two.")
        seen.add(target)


def elsewhere(entry: TaskInput) -> bool:
    """Return whether an input names a task of another workflow, as `workflow_id:task`."""
    return entry.task is not None and ":" in entry.task


def _waits(teams: Sequence[WorkflowGroup], order: Mapping[str, int]) -> Mapping[int, set[int]]:
    return {
        index: {
            order[entry.task]
            for member in team.members
            for entry in member.spec.inputs
            if entry.task is not None and entry.task in order
        }
        for index, team in enumerate(teams)
    }


def _reach(start: int, waits: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    front = [start]
    while front:
        for step in waits[front.pop()] - found:
            found.add(step)
            front.append(step)
    return found


def needs_of(teams: Sequence[WorkflowGroup]) -> Mapping[str, frozenset[str]]:
    """Return, for each group, the groups it waits for directly."""
    order = {member.name: index for index, team in enumerate(teams) for member in team.members}
    waits = _waits(teams, order)
    return MappingProxyType(
        {team.name: frozenset(teams[step].name for step in waits[index]) for index, team in enumerate(teams)}
    )
