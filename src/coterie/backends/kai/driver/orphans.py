"""Objects that no workflow has any more: left behind by a crash, a lost store, or a deletion that was interrupted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from coterie.backends.base.driver import DrivenWorkflow
from coterie.backends.kai.driver.objects import ObjectMeta
from coterie.backends.kai.driver.removal import RemovalScope
from coterie.backends.kai.manifests.metadata import BACKEND, STORE
from coterie.backends.shared.names import label_value
from coterie.kube.kinds import ObjectKind
from coterie.lifecycle import GroupState, Presence, TaskState

_ALIVE = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The scopes to be removed, and words about objects that carry the store's label but are somebody else's."""

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
    return SweepResult((*whole, *tasks), _foreign(foreign))


def _foreign(names: Sequence[str]) -> tuple[str, ...]:
    listed = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return (f"{listed}: labelled as objects of this service, but not its own; they are left alone",) if names else ()


def leftovers(others: Iterable[tuple[ObjectKind, ObjectMeta]], backends: Collection[str]) -> tuple[str, ...]:
    """Return which objects of this service belong to backends that it does not have any more, and what to do."""
    # Another thread may change them meanwhile.
    known = {label_value(name) for name in tuple(backends)}
    found: dict[str, list[tuple[ObjectKind, ObjectMeta]]] = {}
    for kind, meta in others:
        if meta.own and meta.label(BACKEND) not in known:
            found.setdefault(meta.label(BACKEND), []).append((kind, meta))
    return tuple(_left(backend, some) for backend, some in sorted(found.items()))


def _left(backend: str, some: list[tuple[ObjectKind, ObjectMeta]]) -> str:
    named = ", ".join(f"{kind.name} {meta.name}" for kind, meta in some[:3])
    more = f" and {len(some) - 3} more" if len(some) > 3 else ""
    # Other software has kinds of the same names, so groups are written out. Kinds of the whole cluster ignore `-n`.
    kinds = ",".join(dict.fromkeys(kind.crd if kind.group else kind.plural for kind, _ in some))
    inside = next((f" -n {meta.namespace}" for kind, meta in some if kind.namespaced), "")
    selector = f"{STORE}={some[0][1].label(STORE)},{BACKEND}={backend}"
    return (
        f'{named}{more}: left by backend "{backend}", which is not in the configuration; add a backend of that name '
        f"again, or remove them: kubectl delete {kinds}{inside} -l {selector}"
    )


def _group(meta: ObjectMeta, workflow: DrivenWorkflow | None) -> GroupState | None:
    groups = workflow.state.groups if workflow else ()
    return next((each for each in groups if label_value(each.name) == meta.group), None)


def _alive(group: GroupState) -> bool:
    return any(task.presence in _ALIVE for task in group.tasks)


def _is(task: TaskState, meta: ObjectMeta) -> bool:
    return label_value(task.name) == meta.task and task.attempt == meta.attempt and task.presence in _ALIVE
