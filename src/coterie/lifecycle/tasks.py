"""The effects of observations from the queue and a backend on placements and tasks.

Each function ignores observations of earlier attempts, repeated ones, and those that arrive too late.
"""

from __future__ import annotations

from collections.abc import Iterator

from coterie.errors import Reason
from coterie.lifecycle.clock import overdue
from coterie.lifecycle.groups import again, decide, restart
from coterie.lifecycle.observations import Ended, Lost, Placed, Refused, Running, Scheduled, Up
from coterie.lifecycle.spec import ExitAction
from coterie.lifecycle.state import TaskState, Waiting
from coterie.lifecycle.status import Presence, Status
from coterie.lifecycle.turn import Turn

# Reasons that would block the whole group in any domain, or of which that is not known: running tasks are not given up
# for them.
_HELD_EVERYWHERE = frozenset(
    {Reason.LEVEL_LOST, Reason.OVER_QUOTA, Reason.INVALID_SPEC, Reason.SCHEDULER_REFUSED, Reason.UNDECIDED}
)


def placed(turn: Turn, index: int, told: Placed) -> None:
    """Record the nodes that the queue found; a task without a node yet is still being scheduled."""
    nodes = dict(told.nodes)
    places = list(_of(turn, index, told.attempt, Presence.QUEUED))
    for place in places:
        turn.task(index, place, presence=Presence.PLACED)
        _on_node(turn, index, place, nodes.get(turn.groups[index].tasks[place].name, ""))
    if places:
        group = turn.group(index, waiting=None)
        used = len(set(nodes.values()))
        where = f" on {used} {'node' if used == 1 else 'nodes'}" if used else ""
        turn.record("Placed", f'{len(places)} of {len(group.tasks)} tasks of group "{group.name}" placed{where}', group)


def refused(turn: Turn, index: int, told: Refused) -> None:
    """Record why a group waits, or move the whole group if its other tasks are running.

    The group moves only where other nodes can help. For some reasons no other domain is better: then the other tasks
    keep running.
    """
    group = turn.groups[index]
    if not any(task.attempt == told.attempt and task.status is Status.SCHEDULING for task in group.tasks):
        return
    beside = told.attempt > group.base and any(task.present and _going(task) for task in group.tasks)
    if beside and told.reason not in _HELD_EVERYWHERE:
        restart(turn, index, f"no place beside the tasks that run: {told.message}")
        return
    known = group.waiting
    if known is None or known.reason != told.reason:
        turn.record("Waiting", f"{told.reason}: {told.message}", group)
        turn.group(index, waiting=Waiting(told.reason, told.message, turn.now))
    elif known.message != told.message:
        turn.group(index, waiting=Waiting(told.reason, told.message, known.since))


def created(turn: Turn, index: int, attempt: int) -> None:
    """Record that a placement's objects exist."""
    for place in list(_of(turn, index, attempt, Presence.PLACED)):
        turn.task(index, place, presence=Presence.CREATED)


def gone(turn: Turn, index: int, attempt: int) -> None:
    """Record that no object of a group is left, so that its capacity can be returned."""
    group = turn.groups[index]
    if attempt != group.base:
        return
    for place, task in enumerate(group.tasks):
        if task.presence is Presence.DELETING:
            turn.task(index, place, presence=Presence.RETURNING)


def stopped(turn: Turn, index: int, place: int) -> None:
    """Record that no object of a single task is left, so that its capacity can be returned."""
    if turn.groups[index].tasks[place].presence is Presence.STOPPING:
        turn.task(index, place, presence=Presence.RETURNING)


def released(turn: Turn, index: int, attempt: int, names: tuple[str, ...]) -> None:
    """Record that the queue has removed tasks of a placement."""
    group = turn.groups[index]
    for place in list(_of(turn, index, attempt, Presence.RETURNING)):
        if group.tasks[place].name in names:
            turn.task(index, place, presence=Presence.ABSENT)
    if group.cleaning and not turn.groups[index].cleaning:
        turn.record("Cleaned", f'nothing is left of group "{group.name}"', group)


def seen(turn: Turn, index: int, place: int, told: Scheduled | Up | Running) -> None:
    """Record the progress of a task towards running; an observation older than the known progress only confirms it."""
    task = turn.groups[index].tasks[place]
    if not (task.present and _going(task)):
        return
    task = _heard(turn, index, place)
    if told.node and told.node != task.node:
        task = _on_node(turn, index, place, told.node)
    if isinstance(told, Scheduled) or task.status is Status.RUNNING:
        return
    if isinstance(told, Up):
        if not task.up:
            turn.task(index, place, up=True, status=Status.INITIALIZING, placed=_first(task.placed, turn.now))
    else:
        _started(turn, index, place, turn.at)


def ended(turn: Turn, index: int, place: int, told: Ended) -> None:
    """Apply the meaning of a task's exit code, unless the task ended after the time limit of its group."""
    task = turn.groups[index].tasks[place]
    if not (task.present and _going(task)):
        return
    _heard(turn, index, place)
    _started(turn, index, place, turn.now if told.started is None else min(told.started, turn.at))
    turn.at = max(turn.at, turn.groups[index].tasks[place].started or turn.at)
    task = turn.task(index, place, exit_code=told.exit_code, ended=turn.at)
    if told.at is not None and overdue(turn, index):
        return
    meaning = turn.rules(index).tasks[place].meaning(told.exit_code)
    said = f"exit code {told.exit_code}" + (f" ({told.message})" if told.message else "")
    most = turn.spec.max_reschedules
    if meaning is ExitAction.COMPLETE:
        task = turn.task(index, place, status=Status.COMPLETED, message="")
        turn.record("TaskCompleted", f'task "{task.name}" completed with {said}', turn.groups[index], task)
        decide(turn, index, place)
    elif meaning is ExitAction.FAIL:
        _fail(turn, index, place, Status.FAILED, said)
    elif task.reschedules >= most:
        _fail(turn, index, place, Status.FAILED, f"{said} asks for another try, but all {most} were used")
    else:
        turn.task(index, place, reschedules=task.reschedules + 1)
        again(turn, index, place, f'task "{task.name}" ended with {said}: try {task.reschedules + 1} of {most} follows')


def lost(turn: Turn, index: int, place: int, told: Lost) -> None:
    """Reschedule a lost task, away from a failed node, or fail it where another attempt does not help."""
    group = turn.groups[index]
    task = group.tasks[place]
    fate = told.cause.fate
    if fate.avoids_node and task.node and not group.status.final and task.node not in group.excluded:
        turn.group(index, excluded=(*group.excluded, task.node))
    if not (task.present and _going(task)):
        return
    _heard(turn, index, place)
    said = told.message or f"{told.cause}" + (f" on node {task.node}" if task.node else "")
    most = turn.spec.max_infrastructure_retries
    if not fate.retried:
        _fail(turn, index, place, fate.status, said)
    elif task.losses >= most:
        _fail(turn, index, place, fate.status, f"{said}; lost more than {most} times")
    else:
        turn.task(index, place, losses=task.losses + 1)
        again(turn, index, place, f'task "{task.name}" was lost: {said}')


def recovered(turn: Turn, node: str) -> None:
    """Remove a node from the excluded nodes of all groups."""
    for index, group in enumerate(turn.groups):
        if node in group.excluded:
            turn.group(index, excluded=tuple(each for each in group.excluded if each != node))


def _of(turn: Turn, index: int, attempt: int, presence: Presence) -> Iterator[int]:
    for place, task in enumerate(turn.groups[index].tasks):
        if task.attempt == attempt and task.presence is presence:
            yield place


def _going(task: TaskState) -> bool:
    return task.status in (Status.SCHEDULING, Status.INITIALIZING, Status.RUNNING)


def _first(known: float | None, now: float) -> float:
    return now if known is None else known


def _heard(turn: Turn, index: int, place: int) -> TaskState:
    task = turn.groups[index].tasks[place]
    return turn.task(index, place, presence=Presence.CREATED) if task.presence is Presence.PLACED else task


def _on_node(turn: Turn, index: int, place: int, node: str) -> TaskState:
    task = turn.groups[index].tasks[place]
    if not node:
        return task
    if task.status is Status.SCHEDULING:
        turn.group(index, waiting=None)
        return turn.task(index, place, node=node, status=Status.INITIALIZING, placed=turn.now)
    return turn.task(index, place, node=node)


def _started(turn: Turn, index: int, place: int, at: float) -> None:
    """Record that a task has been running since a time, but not from before it was placed."""
    group = turn.groups[index]
    task = group.tasks[place]
    if task.status is Status.RUNNING:
        return
    at = max(at, _first(task.placed, at))
    task = turn.task(index, place, status=Status.RUNNING, up=False, placed=_first(task.placed, at), started=at)
    where = f" on node {task.node}" if task.node else ""
    turn.record("TaskRunning", f'task "{task.name}" runs{where}', group, task)
    turn.started = min(at, _first(turn.started, at))
    if group.started is None or at < group.started:
        turn.group(index, started=min(at, _first(group.started, at)), waiting=None)


def _fail(turn: Turn, index: int, place: int, status: Status, message: str) -> None:
    task = turn.task(index, place, status=status, message=message, ended=turn.at)
    turn.record("TaskFailed", f'task "{task.name}" ended as {status}: {message}', turn.groups[index], task)
    decide(turn, index, place)
