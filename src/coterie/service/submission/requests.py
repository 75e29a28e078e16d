"""The validation of user requests: known statuses, and changes that the state of a workflow allows."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.errors import Conflict, NotFound, UsageError, did_you_mean
from coterie.lifecycle import Spec, State, Status, from_json, retry_fault
from coterie.store import RequestRecord, WorkflowRecord


def check_statuses(statuses: Sequence[str]) -> None:
    """Raise `UsageError` for a status that does not exist."""
    known = [status.value for status in Status]
    for status in statuses:
        if status not in known:
            hint = f"{did_you_mean(status.upper(), known)} Statuses are: {', '.join(known)}.".strip()
            raise UsageError(f'there is no status "{status[:80]}"', hint)


def cancels(stored: WorkflowRecord, waiting: Sequence[RequestRecord], *, force: bool) -> bool:
    """Return whether there is something to cancel; raise `Conflict` for a workflow that has ended in another way.

    An ended workflow may be about to be retried, as long as a user request is pending. The life cycle applies requests
    in order, and ignores a cancellation that finds nothing to end.
    """
    try:
        state = from_json(State, stored.state)
    except UsageError:
        # The leader ends it without its state.
        return not stored.finished
    if not state.status.final or waiting or (force and state.cleaning):
        return True
    if state.status is Status.FAILED_CANCELED:
        return False
    raise Conflict(
        f'workflow "{stored.id}" has already ended as {state.status}',
        "Its tasks are being stopped; --force kills them at once." if state.cleaning else "There is nothing to do.",
    )


def retries(stored: WorkflowRecord, waiting: Sequence[RequestRecord], *, task: str | None) -> bool:
    """Return true for a retry that is possible; raise for one that is not, or that comes after a deletion."""
    check_retry(stored, task)
    if any(each.observation.get("kind") == "delete" for each in waiting):
        raise Conflict(f'workflow "{stored.id}" is about to be deleted, and cannot be retried', "Submit it again.")
    return True


def deletes(_stored: WorkflowRecord, waiting: Sequence[RequestRecord]) -> bool:
    """Return whether a deletion is new; a repeated one is no fault."""
    return not any(each.observation.get("kind") == "delete" for each in waiting)


def check_retry(stored: WorkflowRecord, task: str | None) -> None:
    """Raise unless a workflow, or a task of it, can be retried: `NotFound` for an unknown task, else `Conflict`."""
    spec, state = from_json(Spec, stored.spec), from_json(State, stored.state)
    if task is not None and task not in spec.places:
        hint = f"Tasks are: {', '.join(list(spec.places)[:12])}. {did_you_mean(task, spec.places)}".strip()
        raise NotFound(f'workflow "{stored.id}" has no task "{task[:80]}"', hint)
    if fault := retry_fault(spec, state, task):
        raise Conflict(f'workflow "{stored.id}" cannot be retried: {fault}', f"See: coterie show {stored.id}")
