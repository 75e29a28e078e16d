"""What becomes of a group: when it may run, how its tasks decide it, how it ends, and how it starts again."""

from __future__ import annotations

from dataclasses import replace

from coterie.lifecycle.state import TaskState
from coterie.lifecycle.status import Presence, Status
from coterie.lifecycle.turn import Turn, archived, leaving

# Of tasks that have not ended, the one that is furthest says what a group is doing that has not run yet.
_FURTHEST_FIRST = (
    Status.INITIALIZING,
    Status.SCHEDULING,
    Status.RESCHEDULED,
    Status.PROCESSING,
    Status.WAITING,
)
_PENDING = (Status.PROCESSING, Status.RESCHEDULED)


def finish(turn: Turn, index: int, status: Status, message: str) -> None:
    """End a group: its result is known now, tasks that have none take it over, and everything is removed.

    It ended when what decides it happened. Tasks that are stopped for it run until now.
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
    """End a group if the end of this task decides about it."""
    rules, group = turn.rules(index), turn.groups[index]
    task = group.tasks[place]
    if rules.ignore_nonlead_status and place != rules.lead:
        return
    if task.status.failed:
        finish(turn, index, task.status, f'task "{task.name}": {task.message}')
    elif rules.ignore_nonlead_status:
        finish(turn, index, Status.COMPLETED, "")
    elif all(each.status is Status.COMPLETED for each in group.tasks):
        # The last one to be heard of need not be the last one that ended.
        turn.at = max(turn.at, *(each.ended or turn.at for each in group.tasks))
        finish(turn, index, Status.COMPLETED, "")


def again(turn: Turn, index: int, place: int, why: str) -> None:
    """Run a task again: alone where its group goes on without it for a while, else with the whole group.

    Others that wait for a place of their own are asked for anew together with it: two requests might be granted places
    that do not belong together.
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
    """Run a whole group again, tasks that completed included: its tasks work together or not at all."""
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
    """Let every group do what it can do now: fail behind another, or ask for a place."""
    for index, group in enumerate(turn.groups):
        # A group that did not change has done it before, unless it waits for others.
        if group.status.final or (group.status is not Status.WAITING and group is turn.before.groups[index]):
            continue
        if group.status is Status.WAITING:
            _admit(turn, index)
        _ask(turn, index)
        _show(turn, index)


def _admit(turn: Turn, index: int) -> None:
    needs = [turn.groups[turn.spec.order[name]] for name in turn.rules(index).needs]
    if failed := next((need for need in needs if need.status.failed), None):
        finish(turn, index, Status.FAILED_UPSTREAM, f'it needs group "{failed.name}", which ended as {failed.status}')
    elif all(need.status is Status.COMPLETED for need in needs):
        tasks = tuple(replace(task, status=Status.PROCESSING, queued=turn.now) for task in turn.groups[index].tasks)
        turn.group(index, tasks=tasks, queued=turn.now)


def _ask(turn: Turn, index: int) -> None:
    """Queue the tasks that wait to run, once nothing is left of their attempts before."""
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


def _show(turn: Turn, index: int) -> None:
    """Derive what a group is doing: it runs from its first task that does until it ends or starts again as a whole."""
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
