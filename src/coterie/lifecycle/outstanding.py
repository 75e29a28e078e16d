"""The actions still to be performed, derived from the state alone, so that a service knows them after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.lifecycle.actions import Action, Create, Delete, Enqueue, Go, ReleaseTasks, Stop
from coterie.lifecycle.spec import GroupRules, Spec
from coterie.lifecycle.state import GroupState, State, TaskState
from coterie.lifecycle.status import Presence, Status

# Nothing is to be done about tasks that are gone, or run.
_LASTING = (Presence.ABSENT, Presence.CREATED)


def outstanding(spec: Spec, state: State) -> tuple[Action, ...]:
    """Return every action whose effect is not yet confirmed, in an order in which they can be performed."""
    grace_s = grace(spec, state)
    return tuple(
        action
        for rules, group in zip(spec.groups, state.groups, strict=True)
        for action in group_outstanding(rules, group, grace_s)
    )


def grace(spec: Spec, state: State) -> float:
    """Return the grace period of tasks that are stopped: none once a user forces the cancellation."""
    return 0.0 if state.cancel is not None and state.cancel.force else spec.grace_s


def group_outstanding(rules: GroupRules, group: GroupState, grace_s: float) -> Iterator[Action]:
    """Yield the unconfirmed actions of one group; those that free capacity come first."""
    found = _by_presence(group)
    if Presence.DELETING in found:
        yield Delete(group.name, group.base, group.attempt, grace_s)
    for attempt, tasks in found.get(Presence.STOPPING, {}).items():
        yield from (Stop(task.name, attempt, grace_s) for task in tasks)
    for attempt, tasks in found.get(Presence.RETURNING, {}).items():
        yield ReleaseTasks(group.name, attempt, tuple(task.name for task in tasks))
    yield from _requests(group, found.get(Presence.QUEUED, {}))
    for attempt, tasks in found.get(Presence.PLACED, {}).items():
        yield Create(group.name, attempt, group.base, rules.held, tuple((task.name, task.node) for task in tasks))
    if rules.held and all(_passed(task) for task in group.tasks):
        yield from (Go(task.name, task.attempt) for task in group.tasks if _waits(task))


def requests(group: GroupState) -> Iterator[Enqueue]:
    """Yield the requests of a group to the queue."""
    return _requests(group, _by_presence(group).get(Presence.QUEUED, {}))


def unscheduled(group: GroupState) -> Iterator[Enqueue]:
    """Yield the requests whose tasks wait for a scheduler with its own queue to choose their nodes."""
    waiting: dict[int, list[TaskState]] = {}
    for task in group.tasks:
        if task.present and task.status is Status.SCHEDULING and not task.node:
            waiting.setdefault(task.attempt, []).append(task)
    return _requests(group, waiting)


def _requests(group: GroupState, queued: Mapping[int, Sequence[TaskState]]) -> Iterator[Enqueue]:
    for attempt, tasks in queued.items():
        names = tuple(task.name for task in tasks)
        yield Enqueue(group.name, attempt, group.base, names, group.excluded, tuple(anchors(group)))


def anchors(group: GroupState) -> Iterator[tuple[str, str]]:
    """Yield the tasks that stay on their nodes, with these nodes."""
    for task in group.tasks:
        if task.present and not task.status.final and task.node:
            yield task.name, task.node


def _by_presence(group: GroupState) -> dict[Presence, dict[int, list[TaskState]]]:
    """Return the tasks whose presence is to change, by presence and by attempt."""
    found: dict[Presence, dict[int, list[TaskState]]] = {}
    for task in group.tasks:
        if task.presence not in _LASTING:
            found.setdefault(task.presence, {}).setdefault(task.attempt, []).append(task)
    return found


def _waits(task: TaskState) -> bool:
    return task.up and task.present


def _passed(task: TaskState) -> bool:
    """Return whether a task no longer delays the start of the other tasks of its group."""
    return task.status is Status.RUNNING or task.status.final or _waits(task)
