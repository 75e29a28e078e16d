"""The effects of user requests on a workflow: submission, cancellation and retry."""

from __future__ import annotations

from dataclasses import replace

from coterie.lifecycle.groups import finish
from coterie.lifecycle.observations import CancelAsked, RetryAsked
from coterie.lifecycle.spec import Spec
from coterie.lifecycle.state import Cancel, State
from coterie.lifecycle.status import Status
from coterie.lifecycle.turn import Turn, archived


def submit(turn: Turn) -> None:
    """Start a workflow; every group waits until its dependencies are known to be met.

    A workflow that was canceled before, and then retried, is already started.
    """
    if turn.submitted is not None:
        return
    turn.submitted = turn.now
    for index, group in enumerate(turn.groups):
        if group.status is Status.SUBMITTING:
            tasks = tuple(replace(task, status=Status.WAITING) for task in group.tasks)
            turn.group(index, status=Status.WAITING, tasks=tasks)


def cancel(turn: Turn, told: CancelAsked) -> None:
    """End everything; a repeated request with force removes the grace period of tasks that are being stopped."""
    known = turn.cancel
    open_groups = [index for index, group in enumerate(turn.groups) if not group.status.final]
    if known is None and not open_groups and not (told.force and turn.before.cleaning):
        return
    if known is None:
        turn.cancel = Cancel(turn.now, told.message, told.force, told.by)
    elif told.force and not known.force:
        turn.cancel = replace(known, force=True)
    who = f"canceled by {told.by}" if told.by else "canceled"
    why = f"{who}: {told.message}" if told.message else who
    for index in open_groups:
        finish(turn, index, Status.FAILED_CANCELED, why)


def retry_fault(spec: Spec, state: State, task: str | None = None) -> str:
    """Return why a workflow cannot be retried now, or an empty string if it can."""
    if not state.status.final:
        return f"the workflow has not ended, it is {state.status}"
    if state.status is Status.COMPLETED:
        return "the workflow completed; there is nothing to retry"
    if task is None:
        return ""
    if task not in spec.places:
        return f'the workflow has no task "{task}"'
    group = state.groups[spec.places[task][0]]
    if group.status is Status.COMPLETED:
        return f'group "{group.name}" of task "{task}" completed; its results are kept'
    return ""


def retry(turn: Turn, told: RetryAsked) -> None:
    """Run again what did not complete: everything, or a task's group with its dependencies and dependents."""
    if retry_fault(turn.spec, turn.before, told.task):
        return
    turn.cancel = None
    turn.started = None
    for index in sorted(_retried(turn, told.task)):
        group = turn.groups[index]
        if group.status is Status.COMPLETED:
            continue
        tasks = tuple(
            replace(archived(each, each.status, turn.now), status=Status.WAITING, reschedules=0, losses=0)
            for each in group.tasks
        )
        group = turn.group(
            index,
            status=Status.WAITING,
            tasks=tasks,
            excluded=(),
            message="",
            queued=None,
            started=None,
            ended=None,
        )
        turn.record("Retried", f'group "{group.name}" runs again, as {told.by or "a user"} asked', group)


def _retried(turn: Turn, task: str | None) -> set[int]:
    spec = turn.spec
    if task is None:
        return set(range(len(spec.groups)))
    found = {spec.places[task][0]}
    for index in range(len(spec.groups) - 1, -1, -1):
        if index in found:
            found.update(spec.order[name] for name in spec.groups[index].needs)
    for index, rules in enumerate(spec.groups):
        if any(spec.order[name] in found for name in rules.needs):
            found.add(index)
    return found
