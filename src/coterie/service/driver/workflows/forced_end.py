"""The end of a workflow that its life cycle cannot end, as an error keeps it from being driven."""

from __future__ import annotations

from collections.abc import Collection

from coterie.errors import CoterieError
from coterie.lifecycle import Cancel, CancelAsked, Spec, State, Status, from_json, initial, terminated, to_json
from coterie.rendering.text import count
from coterie.service.driver.workflows.state_digest import digest_of
from coterie.store import NewEvent, PlacementRecord, RequestRecord, WorkflowChange, WorkflowRecord

DELETION = "delete"


def end_of(request: RequestRecord) -> CancelAsked | None:
    """Return the cancellation that a request asks for; a deletion asks for one without a grace period."""
    said = request.observation
    by = str(said.get("by", ""))
    if said.get("kind") == "cancel":
        return CancelAsked(str(said.get("message", "")), bool(said.get("force", False)), by)
    return CancelAsked("it is to be deleted", force=True, by=by) if said.get("kind") == DELETION else None


def forced_end(
    stored: WorkflowRecord,
    held: Collection[PlacementRecord],
    request: RequestRecord,
    asked: CancelAsked,
    now: float,
    left: str,
) -> WorkflowChange:
    """Return the finished state of a workflow whose tasks were stopped; `left` says what could not be stopped.

    Where not even its stored state can be read, the state is that of a workflow which never began.
    """
    who = f"canceled by {asked.by}" if asked.by else "canceled"
    why = f"{who}: {asked.message}" if asked.message else who
    freed = sum(len(row.gpus) for row in held)
    rest = f"but {left}" if left else "nothing was left running"
    message = (
        f"{why}. It could not be driven, so it was ended without its life cycle: {count(len(held), 'placed task')} "
        f"with {count(freed, 'GPU')} freed; {rest}."
    )
    cancel = Cancel(now, asked.message, asked.force, asked.by)
    status, encoded, digest, started = Status.FAILED_CANCELED, dict(stored.state), {**stored.digest}, stored.started_at
    try:
        state = terminated(_state(stored), cancel, message, now)
        status, encoded, digest, started = state.status, to_json(state), digest_of(state, stored.digest), state.started
    except CoterieError:
        # Its spec cannot be read either. It can be listed and deleted, and that is all.
        digest |= {"message": message, "waiting": None, "cleaning": False}
    events = [
        NewEvent(now, "EndedByForce", message, stored.id, stored.pool),
        NewEvent(now, "Status", f"{status}: {message}", stored.id, stored.pool, data={"status": status.value}),
        NewEvent(now, "Finished", message, stored.id, stored.pool, data={"finished": True}),
    ]
    return WorkflowChange(
        id=stored.id,
        version=stored.version,
        status=status.value,
        state=encoded,
        started_at=started,
        ended_at=stored.ended_at or now,
        finished=True,
        digest=digest,
        events=events,
        released=[(row.group, row.task, row.attempt) for row in held],
        requests=(request.seq,) if request.observation.get("kind") != DELETION else (),
    )


def _state(stored: WorkflowRecord) -> State:
    spec = from_json(Spec, stored.spec)
    try:
        state = from_json(State, stored.state)
    except CoterieError:
        return initial(spec)
    names = [(group.name, [task.name for task in group.tasks]) for group in state.groups]
    known = [(group.name, [task.name for task in group.tasks]) for group in spec.groups]
    return state if names == known else initial(spec)
