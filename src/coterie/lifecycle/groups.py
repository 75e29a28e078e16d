"""The life cycle of a group: admission to the queue, its result from its tasks, its end, and its restart."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from heapq import heappop, heappush

from coterie.lifecycle.state import TaskState
from coterie.lifecycle.status import Presence, Status
from coterie.lifecycle.transition import Transition, archived, leaving

# Before a group runs, its status is that of its most advanced task.
_FURTHEST_FIRST = (
    Status.INITIALIZING,
    Status.SCHEDULING,
    Status.RESCHEDULED,
    Status.PROCESSING,
    Status.WAITING,
)
_PENDING = (Status.PROCESSING, Status.RESCHEDULED)


def finish(transition: Transition, index: int, status: Status, message: str) -> None:
    """End a group with a result, which tasks without one inherit, and remove its objects.

    The group ended when the deciding observation happened; tasks stopped because of it ran until now.
    """
    group = transition.groups[index]
    tasks = tuple(_ended_with(task, status, message, transition.now) for task in transition.tasks(index))
    group = transition.group(index, status=status, message=message, tasks=tasks, waiting=None, ended=transition.at)
    if status is Status.COMPLETED:
        transition.record("GroupCompleted", f'group "{group.name}" completed', group)
    else:
        transition.record("GroupFailed", f'group "{group.name}" ended as {status}: {message}', group)


def _ended_with(task: TaskState, status: Status, message: str, now: float) -> TaskState:
    presence = leaving(task.presence)
    if task.status.final:
        return replace(task, presence=presence)
    message = message or "stopped when its group completed"
    return replace(task, status=status, message=message, presence=presence, up=False, ended=task.ended or now)


def decide(transition: Transition, index: int, place: int) -> None:
    """End a group if the end of this task decides its result."""
    rules, tasks = transition.rules(index), transition.tasks(index)
    task = tasks[place]
    if rules.ignore_nonlead_status and place != rules.lead:
        return
    if task.status.failed:
        finish(transition, index, task.status, f'task "{task.name}": {task.message}')
    elif rules.ignore_nonlead_status:
        finish(transition, index, Status.COMPLETED, "")
    elif transition.count(index, Status.COMPLETED) == len(tasks):
        # The task observed last is not necessarily the task that ended last.
        transition.at = max(transition.at, *(each.ended or transition.at for each in tasks))
        finish(transition, index, Status.COMPLETED, "")


def reschedule(transition: Transition, index: int, place: int, why: str) -> None:
    """Reschedule a task: alone where its group can continue without it, else with the whole group.

    Other queued tasks of the group are requested anew together with it, because two separate requests might be placed
    in different domains.
    """
    known = transition.tasks(index)
    if not transition.rules(index).ignore_nonlead_status or not any(
        task.present and not task.status.failed for other, task in enumerate(known) if other != place
    ):
        restart(transition, index, why)
        return
    task = archived(known[place], Status.RESCHEDULED, transition.now)
    task = replace(task, status=Status.RESCHEDULED, message=why, presence=Presence.STOPPING, queued=transition.now)
    tasks = tuple(task if other == place else _recalled(each) for other, each in enumerate(known))
    transition.record("TaskRescheduled", why, transition.group(index, tasks=tasks, waiting=None), task)


def move(transition: Transition, index: int, names: Collection[str], why: str) -> None:
    """Reschedule the unfinished tasks of these names together; the others of their group stay where they are."""

    def moved(task: TaskState) -> TaskState:
        # One that is being stopped already stays so: a task of its own that leaves further would take the group along.
        presence = task.presence
        if task.present:
            presence = Presence.STOPPING
        elif presence is Presence.QUEUED:
            presence = leaving(presence)
        task = archived(task, Status.RESCHEDULED, transition.now)
        return replace(task, status=Status.RESCHEDULED, message=why, presence=presence, queued=transition.now)

    known = transition.tasks(index)
    tasks = tuple(moved(task) if task.name in names and not task.status.final else task for task in known)
    listed = ", ".join(f'"{task.name}"' for task, before in zip(tasks, known, strict=True) if task is not before)
    group = transition.group(index, tasks=tasks, waiting=None)
    transition.record("TasksRescheduled", f"tasks {listed} start again together: {why}", group)


def _recalled(task: TaskState) -> TaskState:
    if task.presence is not Presence.QUEUED:
        return task
    return replace(task, status=Status.RESCHEDULED, presence=leaving(task.presence))


def restart(
    transition: Transition,
    index: int,
    why: str,
    *,
    pins: tuple[tuple[str, str, str], ...] = (),
    waits_on: bool = False,
) -> None:
    """Reschedule a whole group, completed tasks included, since its tasks work only together, with these pins.

    With `waits_on` it and its tasks have waited since they were queued, so that their time limit goes on.
    """
    now, queued = transition.now, transition.groups[index].queued if waits_on else None
    tasks = tuple(
        replace(
            archived(task, Status.RESCHEDULED, now),
            status=Status.RESCHEDULED,
            message=why,
            presence=leaving(task.presence),
            queued=task.queued if waits_on and task.queued is not None else now,
        )
        for task in transition.tasks(index)
    )
    group = transition.group(
        index, tasks=tasks, waiting=None, queued=now if queued is None else queued, started=None, pins=pins
    )
    transition.record("GroupRescheduled", f'group "{group.name}" starts again: {why}', group)


def settle(transition: Transition) -> None:
    """Advance every changed group as far as possible now, and those that wait for it: fail or queue them."""
    front, last = transition.touched(), -1
    while front:
        index = heappop(front)
        if index == last:
            continue
        last = index
        if transition.groups[index].status is Status.WAITING:
            _admit(transition, index)
        if not transition.groups[index].status.final:
            _enqueue_pending(transition, index)
            _derive_status(transition, index)
        if transition.groups[index].status.final:
            for dependent in transition.spec.dependents.get(index, ()):
                heappush(front, dependent)
    transition.touched()


def _admit(transition: Transition, index: int) -> None:
    needs = [transition.groups[transition.spec.order[name]] for name in transition.rules(index).needs]
    if failed := next((need for need in needs if need.status.failed), None):
        finish(
            transition, index, Status.FAILED_UPSTREAM, f'it needs group "{failed.name}", which ended as {failed.status}'
        )
    elif all(need.status is Status.COMPLETED for need in needs):
        tasks = tuple(
            replace(task, status=Status.PROCESSING, queued=transition.now) for task in transition.tasks(index)
        )
        transition.group(index, tasks=tasks, queued=transition.now)


def _enqueue_pending(transition: Transition, index: int) -> None:
    """Queue the pending tasks once no object or capacity of their earlier attempts is left."""
    group, known = transition.groups[index], transition.tasks(index)
    if group.status.final or not transition.count(index, *_PENDING):
        return
    pending = [task for task in known if task.status in _PENDING]
    if any(task.presence is not Presence.ABSENT for task in pending):
        return
    attempt = group.attempt + 1
    whole = len(pending) == len(known)
    tasks = tuple(_queued(task, attempt) if task.status in _PENDING else task for task in known)
    group = transition.group(index, tasks=tasks, attempt=attempt, base=attempt if whole else group.base)
    what = f'group "{group.name}"' if whole else ", ".join(f'task "{task.name}"' for task in pending)
    transition.record("Queued", f"{what} waits to be placed", group)


def _queued(task: TaskState, attempt: int) -> TaskState:
    return replace(task, status=Status.SCHEDULING, attempt=attempt, presence=Presence.QUEUED, node="", message="")


def _derive_status(transition: Transition, index: int) -> None:
    """Derive a group's status: it runs from its first running task until it ends or is rescheduled as a whole."""
    group = transition.groups[index]
    if group.status.final:
        return
    if group.started is not None:
        status = Status.RUNNING
    else:
        status = next((status for status in _FURTHEST_FIRST if transition.count(index, status)), group.status)
    if status is not group.status:
        transition.group(index, status=status)
