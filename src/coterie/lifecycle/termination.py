"""The end of a workflow outside its life cycle, for one whose life cycle cannot continue."""

from __future__ import annotations

from dataclasses import replace

from coterie.lifecycle.state import Cancel, GroupState, State, TaskState
from coterie.lifecycle.status import Presence, Status


def terminated(state: State, cancel: Cancel, message: str, now: float) -> State:
    """Return a finished state: everything unfinished is canceled, and nothing holds capacity any more.

    It is for workflows whose life cycle raises errors: nothing is observed and no action follows, so that its caller
    has to stop the tasks and to return their capacity.
    """
    groups = tuple(_terminated(group, message, now) for group in state.groups)
    if state.status.final:
        return replace(state, groups=groups)
    return replace(
        state,
        groups=groups,
        status=Status.FAILED_CANCELED,
        message=message,
        cancel=state.cancel or cancel,
        ended=now,
    )


def _terminated(group: GroupState, message: str, now: float) -> GroupState:
    tasks = tuple(_terminated_task(task, message, now) for task in group.tasks)
    if group.status.final:
        return replace(group, tasks=tasks)
    return replace(group, tasks=tasks, status=Status.FAILED_CANCELED, message=message, waiting=None, ended=now)


def _terminated_task(task: TaskState, message: str, now: float) -> TaskState:
    if task.status.final:
        return replace(task, presence=Presence.ABSENT)
    return replace(task, presence=Presence.ABSENT, up=False, status=Status.FAILED_CANCELED, message=message, ended=now)
