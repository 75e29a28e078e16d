"""The effects of user requests on a workflow: submission, cancellation and retry."""

from __future__ import annotations

from dataclasses import replace

from coterie.lifecycle.groups import finish
from coterie.lifecycle.observations import CancelAsked, RetryAsked
from coterie.lifecycle.spec import Spec
from coterie.lifecycle.state import Cancel, State
from coterie.lifecycle.status import Status
from coterie.lifecycle.transition import Transition, archived


def submit(transition: Transition) -> None:
    """Start a workflow; every group waits until its dependencies are known to be met.

    A workflow that was canceled before, and then retried, is already started.
    """
    if transition.submitted is not None:
        return
    transition.submitted = transition.now
    for index, group in enumerate(transition.groups):
        if group.status is Status.SUBMITTING:
            tasks = tuple(replace(task, status=Status.WAITING) for task in transition.tasks(index))
            transition.group(index, status=Status.WAITING, tasks=tasks)


def cancel(transition: Transition, observed: CancelAsked) -> None:
    """End everything; a repeated request with force removes the grace period of tasks that are being stopped."""
    known = transition.cancel
    open_groups = [index for index, group in enumerate(transition.groups) if not group.status.final]
    if known is None and not open_groups and not (observed.force and transition.before.cleaning):
        return
    if known is None:
        transition.cancel = Cancel(transition.now, observed.message, observed.force, observed.by)
    elif observed.force and not known.force:
        transition.cancel = replace(known, force=True)
    who = f"canceled by {observed.by}" if observed.by else "canceled"
    why = f"{who}: {observed.message}" if observed.message else who
    for index in open_groups:
        finish(transition, index, Status.FAILED_CANCELED, why)


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


def retry(transition: Transition, observed: RetryAsked) -> None:
    """Run again what did not complete: everything, or a task's group with its dependencies and dependents."""
    if retry_fault(transition.spec, transition.before, observed.task):
        return
    transition.cancel = None
    transition.started = None
    for index in sorted(_retried(transition, observed.task)):
        group = transition.groups[index]
        if group.status is Status.COMPLETED:
            continue
        tasks = tuple(
            replace(archived(each, each.status, transition.now), status=Status.WAITING, reschedules=0, losses=0)
            for each in transition.tasks(index)
        )
        group = transition.group(
            index,
            status=Status.WAITING,
            tasks=tasks,
            excluded=(),
            pins=(),
            message="",
            queued=None,
            started=None,
            ended=None,
        )
        transition.record("Retried", f'group "{group.name}" runs again, as {observed.by or "a user"} asked', group)


def _retried(transition: Transition, task: str | None) -> set[int]:
    spec = transition.spec
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
