"""Objects that no workflow has any more: left behind by a crash, a lost store, or a deletion that was interrupted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from coterie.backends.base.driver import DrivenWorkflow
from coterie.backends.kai.driver.objects import ObjectMeta
from coterie.backends.kai.driver.removal import RemovalScope
from coterie.backends.shared.names import label_value
from coterie.kube.kinds import ObjectKind
from coterie.lifecycle import GroupState, Presence, TaskState

_ALIVE = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The scopes to be removed, and the names of objects that carry the store's label but are somebody else's."""

    scopes: tuple[RemovalScope, ...]
    foreign: tuple[str, ...]


def sweep(
    found: Iterable[tuple[ObjectKind, ObjectMeta]],
    workflows: Mapping[str, DrivenWorkflow],
    spared: Collection[str],
    busy: Collection[RemovalScope],
) -> SweepResult:
    """Return the orphans among the objects of a store; `busy` are scopes that are created or removed at this moment."""
    known = {label_value(name): one for name, one in workflows.items()}
    left_alone = {label_value(name) for name in spared}
    by_workflow: dict[str, list[RemovalScope]] = {}
    for each in busy:
        by_workflow.setdefault(each.workflow, []).append(each)
    groups: dict[tuple[str, str], int] = {}
    tasks: list[RemovalScope] = []
    foreign: list[str] = []
    for kind, meta in found:
        if not meta.own:
            foreign.append(f"{kind.name} {meta.name}")
            continue
        if meta.workflow in left_alone or any(each.covers(meta) for each in by_workflow.get(meta.workflow, ())):
            continue
        group = _group(meta, known.get(meta.workflow))
        if group is not None and _alive(group):
            if meta.task and not any(_is(task, meta) for task in group.tasks):
                tasks.append(RemovalScope(meta.workflow, meta.group, meta.task, meta.attempt, meta.attempt))
            if meta.task or meta.attempt >= group.base:
                continue
        # Numbers of placements are never used again, so nothing that is created later is covered.
        name = (meta.workflow, meta.group)
        groups[name] = max(meta.attempt, groups.get(name, 0))
    whole = (RemovalScope(workflow, group, last=last) for (workflow, group), last in groups.items())
    return SweepResult((*whole, *tasks), tuple(foreign))


def _group(meta: ObjectMeta, workflow: DrivenWorkflow | None) -> GroupState | None:
    groups = workflow.state.groups if workflow else ()
    return next((each for each in groups if label_value(each.name) == meta.group), None)


def _alive(group: GroupState) -> bool:
    return any(task.presence in _ALIVE for task in group.tasks)


def _is(task: TaskState, meta: ObjectMeta) -> bool:
    return label_value(task.name) == meta.task and task.attempt == meta.attempt and task.presence in _ALIVE
