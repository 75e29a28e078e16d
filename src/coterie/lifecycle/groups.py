"""The life cycle of a group: admission to the queue, its result from its tasks, its end, and its restart."""

from __future__ import annotations

from dataclasses import replace

from coterie.lifecycle.state import TaskState
from coterie.lifecycle.status import Presence, Status
from coterie.lifecycle.turn import Turn, archived, leaving

# Before a group runs, its status is that of its most advanced task.
_FURTHEST_FIRST = (
    Status.INITIALIZING,
    Status.SCHEDULING,
    Status.RESCHEDULED,
    Status.PROCESSING,
    Status.WAITING,
)
_PENDING = (Status.PROCESSING, Status.RESCHEDULED)


def finish(turn: Turn, index: int, status: Status, message: str) -> None:
    """End a group with a result, which tasks without one inherit, and remove its objects.

    The group ended when the deciding observation happened; tasks stopped because of it ran until now.
    """
    group = turn.groups[index]
    tasks = tuple(_ended_with(task, status, message, turn.now) for task in group.tasks)
    group = turn.group(index, status=status, message=message, tasks=tasks, waiting=None, ended=turn.at)
    if status is Status.COMPLETED:
        turn.record("GroupCompleted", f'group "{group.name}" completed', group)
    else:
        turn.record("GroupFailed", f'group "{group.name}" ended as {status}: {message}', group)


def _ended_with(task: TaskState, status: Status, message: str, now: float) -> TaskState:
    presence = leaving(task.presence)
    if task.status.final:
        return replace(task, presence=presence)
    message = message or "stopped when its group completed"
    return replace(task, status=status, message=message, presence=presence, up=False, ended=task.ended or now)


def decide(turn: Turn, index: int, place: int) -> None:
    """End a group if the end of this task decides its result."""
    rules, group = turn.rules(index), turn.groups[index]
    task = group.tasks[place]
    if rules.ignore_nonlead_status and place != rules.lead:
        return
    if task.status.failed:
        finish(turn, index, task.status, f'task "{task.name}": {task.message}')
    elif rules.ignore_nonlead_status:
        finish(turn, index, Status.COMPLETED, "")
    elif all(each.status is Status.COMPLETED for each in group.tasks):
        # The task observed last is not necessarily the task that ended last.
        turn.at = max(turn.at, *(each.ended or turn.at for each in group.tasks))
        finish(turn, index, Status.COMPLETED, "")


def again(turn: Turn, index: int, place: int, why: str) -> None:
    """Reschedule a task: alone where its group can continue without it, else with the whole group.

    Other queued tasks of the group are requested anew together with it, because two separate requests might be placed
    in different domains.
    """
    group = turn.groups[index]
    if not turn.rules(index).ignore_nonlead_status or not any(
        task.present and not task.status.failed for other, task in enumerate(group.tasks) if other != place
    ):
        restart(turn, index, why)
        return
    task = archived(group.tasks[place], Status.RESCHEDULED, turn.now)
    task = replace(task, status=Status.RESCHEDULED, message=why, presence=Presence.STOPPING, queued=turn.now)
    tasks = tuple(task if other == place else _recalled(each) for other, each in enumerate(group.tasks))
    turn.record("TaskRescheduled", why, turn.group(index, tasks=tasks, waiting=None), task)


def _recalled(task: TaskState) -> TaskState:
    if task.presence is not Presence.QUEUED:
        return task
    return replace(task, status=Status.RESCHEDULED, presence=leaving(task.presence))


def restart(turn: Turn, index: int, why: str) -> None:
    """Reschedule a whole group, completed tasks included, since its tasks work only together."""
    tasks = tuple(
        replace(
            archived(task, Status.RESCHEDULED, turn.now),
            status=Status.RESCHEDULED,
            message=why,
            presence=leaving(task.presence),
            queued=turn.now,
        )
        for task in turn.groups[index].tasks
    )
    group = turn.group(index, tasks=tasks, waiting=None, queued=turn.now, started=None)
    turn.record("GroupRescheduled", f'group "{group.name}" starts again: {why}', group)


def settle(turn: Turn) -> None:
    """Advance every group as far as possible now: fail it after an upstream failure, or queue it."""
    for index, group in enumerate(turn.groups):
        # An unchanged group was advanced before, unless it waits for other groups.
        if group.status.final or (group.status is not Status.WAITING and group is turn.before.groups[index]):
            continue
        if group.status is Status.WAITING:
            _admit(turn, index)
        _enqueue_pending(turn, index)
        _derive_status(turn, index)


def _admit(turn: Turn, index: int) -> None:
    needs = [turn.groups[turn.spec.order[name]] for name in turn.rules(index).needs]
    if failed := next((need for need in needs if need.status.failed), None):
        finish(turn, index, Status.FAILED_UPSTREAM, f'it needs group "{failed.name}", which ended as {failed.status}')
    elif all(need.status is Status.COMPLETED for need in needs):
        tasks = tuple(replace(task, status=Status.PROCESSING, queued=turn.now) for task in turn.groups[index].tasks)
        turn.group(index, tasks=tasks, queued=turn.now)


def _enqueue_pending(turn: Turn, index: int) -> None:
    """Queue the pending tasks once no object or capacity of their earlier attempts is left."""
    group = turn.groups[index]
    pending = [task for task in group.tasks if task.status in _PENDING]
    if group.status.final or not pending or any(task.presence is not Presence.ABSENT for task in pending):
        return
    attempt = group.attempt + 1
    whole = len(pending) == len(group.tasks)
    tasks = tuple(_queued(task, attempt) if task.status in _PENDING else task for task in group.tasks)
    group = turn.group(index, tasks=tasks, attempt=attempt, base=attempt if whole else group.base)
    what = f'group "{group.name}"' if whole else ", ".join(f'task "{task.name}"' for task in pending)
    turn.record("Queued", f"{what} waits for a place", group)


def _queued(task: TaskState, attempt: int) -> TaskState:
    return replace(task, status=Status.SCHEDULING, attempt=attempt, presence=Presence.QUEUED, node="", message="")


def _derive_status(turn: Turn, index: int) -> None:
    """Derive a group's status: it runs from its first running task until it ends or is rescheduled as a whole."""
    group = turn.groups[index]
    if group.status.final:
        return
    if group.started is not None:
        status = Status.RUNNING
    else:
        found = {task.status for task in group.tasks}
        status = next((status for status in _FURTHEST_FIRST if status in found), group.status)
    if status is not group.status:
        turn.group(index, status=status)
