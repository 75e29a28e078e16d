"""The effects of observations from the queue and a backend on placements and tasks.

Each function ignores observations of earlier attempts, repeated ones, and those that arrive too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coterie.errors import Reason
from coterie.lifecycle.clock import overdue
from coterie.lifecycle.groups import decide, move, reschedule, restart
from coterie.lifecycle.observations import Ended, Lost, Placed, Refused, Rescued, Running, Scheduled, Up
from coterie.lifecycle.spec import ExitAction
from coterie.lifecycle.state import TaskState, Waiting
from coterie.lifecycle.status import Presence, Status
from coterie.lifecycle.transition import Transition

# Reasons that would block the whole group in any domain, or of which that is not known: running tasks are not given up
# for them.
_HELD_EVERYWHERE = frozenset(
    {
        Reason.LEVEL_LOST,
        Reason.OVER_QUOTA,
        Reason.INVALID_SPEC,
        Reason.SCHEDULER_REFUSED,
        Reason.COMPUTE_DOMAIN_NOT_READY,
        Reason.UNDECIDED,
    }
)


def placed(transition: Transition, index: int, observed: Placed) -> None:
    """Record the nodes that the queue found; a task without a node yet is still being scheduled."""
    nodes = dict(observed.nodes)
    places = list(_of(transition, index, observed.attempt, Presence.QUEUED))
    for place in places:
        transition.task(index, place, presence=Presence.PLACED)
        _on_node(transition, index, place, nodes.get(transition.tasks(index)[place].name, ""))
    if places:
        group = transition.group(index, waiting=None)
        used = len(set(nodes.values()))
        where = f" on {used} {'node' if used == 1 else 'nodes'}" if used else ""
        transition.record(
            "Placed",
            f'{len(places)} of {len(transition.tasks(index))} tasks of group "{group.name}" placed{where}',
            group,
        )


def refused(transition: Transition, index: int, observed: Refused) -> None:
    """Record why a group waits, or move tasks if others of the group are running.

    First those move that must share a domain with the refused ones; where they have none, or have just moved, the whole
    group does. Tasks move only where other nodes can help. For some reasons no other domain is better: then the other
    tasks keep running.
    """
    group, known_tasks = transition.groups[index], transition.tasks(index)
    if not any(task.attempt == observed.attempt and task.status is Status.SCHEDULING for task in known_tasks):
        return
    beside = observed.attempt > group.base and any(task.present and _is_active(task) for task in known_tasks)
    if beside and observed.reason not in _HELD_EVERYWHERE:
        said = f"no room beside the running tasks: {observed.message}"
        if _can_move(known_tasks, observed):
            move(transition, index, observed.together, said)
        else:
            restart(transition, index, said)
        return
    known = group.waiting
    if known is None or known.reason != observed.reason:
        transition.record("Waiting", f"{observed.reason}: {observed.message}", group)
        transition.group(index, waiting=Waiting(observed.reason, observed.message, transition.now, observed.never))
    elif (known.message, known.never) != (observed.message, observed.never):
        transition.group(index, waiting=Waiting(observed.reason, observed.message, known.since, observed.never))


def _can_move(tasks: Sequence[TaskState], observed: Refused) -> bool:
    """Return whether tasks that share a domain can leave it, while others of the group stay where they are."""
    unfinished = [task for task in tasks if not task.status.final]
    own = [task for task in unfinished if task.name in observed.together]
    placed = any(task.present and task.status is not Status.SCHEDULING for task in own)
    return placed and len(own) < len(unfinished)


def rescued(transition: Transition, index: int, observed: Rescued) -> None:
    """Start a group again with other pins, if no task of it has a node yet."""
    group = transition.groups[index]
    waits = all(
        task.attempt == observed.attempt and task.present and task.status is Status.SCHEDULING
        for task in transition.tasks(index)
    )
    if waits and group.pins != observed.pins:
        transition.record("Rescued" if observed.pins else "RescueUndone", observed.message, group)
        restart(transition, index, observed.message, pins=observed.pins, waits_on=True)


def created(transition: Transition, index: int, attempt: int) -> None:
    """Record that a placement's objects exist, which ends a wait for them."""
    group = transition.groups[index]
    if group.waiting is not None and group.waiting.reason == Reason.GANG_INCOMPLETE.value:
        transition.group(index, waiting=None)
    for place in list(_of(transition, index, attempt, Presence.PLACED)):
        transition.task(index, place, presence=Presence.CREATED)


def gone(transition: Transition, index: int, attempt: int) -> None:
    """Record that no object of a group is left, so that its capacity can be returned."""
    group = transition.groups[index]
    if attempt != group.base:
        return
    for place, task in enumerate(transition.tasks(index)):
        if task.presence is Presence.DELETING:
            transition.task(index, place, presence=Presence.RETURNING)


def stopped(transition: Transition, index: int, place: int) -> None:
    """Record that no object of a single task is left, so that its capacity can be returned."""
    if transition.tasks(index)[place].presence is Presence.STOPPING:
        transition.task(index, place, presence=Presence.RETURNING)


def released(transition: Transition, index: int, attempt: int, names: tuple[str, ...]) -> None:
    """Record that the queue has removed tasks of a placement."""
    group = transition.groups[index]
    before = transition.cleaning(index)
    for name in names:
        of, place = transition.spec.places.get(name, (-1, -1))
        task = transition.tasks(index)[place] if of == index else None
        if task is not None and (task.attempt, task.presence) == (attempt, Presence.RETURNING):
            transition.task(index, place, presence=Presence.ABSENT)
    if before and not transition.cleaning(index):
        transition.record("Cleaned", f'cleaned up after group "{group.name}"', group)


def progressed(transition: Transition, index: int, place: int, observed: Scheduled | Up | Running) -> None:
    """Record the progress of a task towards running; an observation older than the known progress only confirms it."""
    task = transition.tasks(index)[place]
    if not (task.present and _is_active(task)):
        return
    task = _confirmed(transition, index, place)
    if observed.node and observed.node != task.node:
        task = _on_node(transition, index, place, observed.node)
    if isinstance(observed, Scheduled) or task.status is Status.RUNNING:
        return
    if isinstance(observed, Up):
        if not task.up:
            transition.task(
                index, place, up=True, status=Status.INITIALIZING, placed=_first(task.placed, transition.now)
            )
    else:
        _started(transition, index, place, transition.at)


def ended(transition: Transition, index: int, place: int, observed: Ended) -> None:
    """Apply the meaning of a task's exit code, unless the task ended after the time limit of its group."""
    task = transition.tasks(index)[place]
    if not (task.present and _is_active(task)):
        return
    _confirmed(transition, index, place)
    _started(
        transition, index, place, transition.now if observed.started is None else min(observed.started, transition.at)
    )
    transition.at = max(transition.at, transition.tasks(index)[place].started or transition.at)
    task = transition.task(index, place, exit_code=observed.exit_code, ended=transition.at)
    if observed.at is not None and overdue(transition, index):
        return
    meaning = transition.rules(index).tasks[place].meaning(observed.exit_code)
    said = f"exit code {observed.exit_code}" + (f" ({observed.message})" if observed.message else "")
    most = transition.spec.max_reschedules
    if meaning is ExitAction.COMPLETE:
        task = transition.task(index, place, status=Status.COMPLETED, message="")
        transition.record("TaskCompleted", f'task "{task.name}" completed with {said}', transition.groups[index], task)
        decide(transition, index, place)
    elif meaning is ExitAction.FAIL:
        _fail(transition, index, place, Status.FAILED, said)
    elif task.reschedules >= most:
        _fail(transition, index, place, Status.FAILED, f"{said} asks for another attempt, but all {most} were used")
    else:
        transition.task(index, place, reschedules=task.reschedules + 1)
        reschedule(
            transition,
            index,
            place,
            f'task "{task.name}" ended with {said}: attempt {task.reschedules + 1} of {most} follows',
        )


def lost(transition: Transition, index: int, place: int, observed: Lost) -> None:
    """Reschedule a lost task, away from a failed node, or fail it where another attempt does not help."""
    group = transition.groups[index]
    task = transition.tasks(index)[place]
    consequence = observed.cause.consequence
    if consequence.avoids_node and task.node and not group.status.final and task.node not in group.excluded:
        transition.group(index, excluded=(*group.excluded, task.node))
    if not (task.present and _is_active(task)):
        return
    _confirmed(transition, index, place)
    said = observed.message or f"{observed.cause}" + (f" on node {task.node}" if task.node else "")
    most = transition.spec.max_infrastructure_retries
    if not consequence.retried:
        _fail(transition, index, place, consequence.status, said)
    elif task.losses >= most:
        _fail(transition, index, place, consequence.status, f"{said}; lost more than {most} times")
    else:
        transition.task(index, place, losses=task.losses + 1)
        reschedule(transition, index, place, f'task "{task.name}" was lost: {said}')


def recovered(transition: Transition, node: str) -> None:
    """Remove a node from the excluded nodes of all groups."""
    for index, group in enumerate(transition.groups):
        if node in group.excluded:
            transition.group(index, excluded=tuple(each for each in group.excluded if each != node))


def _of(transition: Transition, index: int, attempt: int, presence: Presence) -> Iterator[int]:
    for place, task in enumerate(transition.tasks(index)):
        if task.attempt == attempt and task.presence is presence:
            yield place


def _is_active(task: TaskState) -> bool:
    return task.status in (Status.SCHEDULING, Status.INITIALIZING, Status.RUNNING)


def _first(known: float | None, now: float) -> float:
    return now if known is None else known


def _confirmed(transition: Transition, index: int, place: int) -> TaskState:
    task = transition.tasks(index)[place]
    return transition.task(index, place, presence=Presence.CREATED) if task.presence is Presence.PLACED else task


def _on_node(transition: Transition, index: int, place: int, node: str) -> TaskState:
    task = transition.tasks(index)[place]
    if not node:
        return task
    if task.status is Status.SCHEDULING:
        transition.group(index, waiting=None)
        return transition.task(index, place, node=node, status=Status.INITIALIZING, placed=transition.now)
    return transition.task(index, place, node=node)


def _started(transition: Transition, index: int, place: int, at: float) -> None:
    """Record that a task has been running since a time, but not from before it was placed."""
    group = transition.groups[index]
    task = transition.tasks(index)[place]
    if task.status is Status.RUNNING:
        return
    at = max(at, _first(task.placed, at))
    task = transition.task(index, place, status=Status.RUNNING, up=False, placed=_first(task.placed, at), started=at)
    where = f" on node {task.node}" if task.node else ""
    transition.record("TaskRunning", f'task "{task.name}" runs{where}', group, task)
    transition.started = min(at, _first(transition.started, at))
    if group.started is None or at < group.started:
        transition.group(index, started=min(at, _first(group.started, at)), waiting=None)


def _fail(transition: Transition, index: int, place: int, status: Status, message: str) -> None:
    task = transition.task(index, place, status=status, message=message, ended=transition.at)
    transition.record("TaskFailed", f'task "{task.name}" ended as {status}: {message}', transition.groups[index], task)
    decide(transition, index, place)
