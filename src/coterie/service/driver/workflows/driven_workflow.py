"""One driven workflow: its spec and state, unsaved observations, and its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coterie.gang.tree import Shape
from coterie.lifecycle import (
    Action,
    Observation,
    Presence,
    Record,
    Released,
    Spec,
    State,
    StateEncoder,
    advance,
    from_json,
    stored_tasks,
)
from coterie.service.driver.workflows.state_digest import DigestEncoder
from coterie.service.submission.compilation import CompiledWorkflow
from coterie.store import NewEvent, PartRecord, PlacementRecord, Slot, WorkflowChange, WorkflowRecord
from coterie.topology.levels import Topology

Json = dict[str, Any]

_ABSENT = Presence.ABSENT.value
_RESTING = frozenset({_ABSENT, Presence.QUEUED.value})


@dataclass(eq=False)
class LiveWorkflow:
    """An unfinished workflow; `pending`, `placed` and `requests` wait for the next save."""

    id: str
    number: int
    pool: str
    priority: str
    submitted_at: float
    digest: Mapping[str, Any]
    version: int
    spec: Spec
    state: State
    owner: str = ""
    pending: list[Observation] = field(default_factory=list)
    placed: dict[Slot, PlacementRecord] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    _encoder: StateEncoder = field(default_factory=StateEncoder)
    _digests: DigestEncoder = field(default_factory=DigestEncoder)

    @staticmethod
    def of(stored: WorkflowRecord, decoded: tuple[Spec, State] | None = None) -> LiveWorkflow:
        """Return a workflow from the store; raise `UsageError` for an unreadable one.

        `decoded` are its spec and its state, if the caller has them already.
        """
        spec, state = decoded or (from_json(Spec, stored.spec), from_json(State, stored.state))
        return LiveWorkflow(
            stored.id,
            stored.number,
            stored.pool,
            stored.priority,
            stored.submitted_at,
            stored.digest,
            stored.version,
            spec,
            state,
            stored.owner,
            _encoder=StateEncoder.of(state, stored.state),
        )

    @staticmethod
    def rests(stored: WorkflowRecord) -> bool:
        """Return whether a stored workflow only waits: it has no capacity, and nothing of it exists anywhere.

        The answer needs no decoding, and is no for an unreadable one.
        """
        try:
            return stored.state.get("cancel") is None and all(
                task.get("presence", _ABSENT) in _RESTING for task in stored_tasks(stored.state)
            )
        except (AttributeError, KeyError, TypeError):
            return False

    @property
    def dirty(self) -> bool:
        """Whether there is something to save."""
        return bool(self.pending or self.requests)

    def next(self, now: float) -> tuple[State, tuple[Action, ...], WorkflowChange | None]:
        """Return the state after all pending observations, the actions that follow, and the change to save."""
        state, actions = advance(self.spec, self.state, self.pending, now)
        if state is self.state and not self.requests and not self.placed:
            return state, actions, None
        events = [
            NewEvent(each.at, each.kind, each.message, self.id, self.pool, each.group, each.task, each.attempt)
            for each in actions
            if isinstance(each, Record)
        ]
        if state.status is not self.state.status:
            message = f"{state.status}: {state.message}" if state.message else state.status.value
            events.append(NewEvent(now, "Status", message, self.id, self.pool, data={"status": state.status.value}))
        if state.finished and not self.state.finished:
            said = "everything is cleaned up"
            events.append(NewEvent(now, "Finished", said, self.id, self.pool, data={"finished": True}))
        released = [
            (each.group, task, each.attempt)
            for each in self.pending
            if isinstance(each, Released)
            for task in each.tasks
        ]
        gone = set(released)
        encoded = self._encoder.encode(state)
        digest = self._digests.of(state, self.digest, divided=encoded.divided)
        change = WorkflowChange(
            id=self.id,
            version=self.version,
            status=state.status.value,
            state=encoded.data,
            started_at=state.started,
            ended_at=state.ended,
            finished=state.finished,
            digest=digest,
            parts=[
                PartRecord(number, part.data, self._digests.queued(part.groups))
                for number, part in encoded.parts.items()
            ],
            events=events,
            placed=[row for slot, row in self.placed.items() if slot not in gone],
            released=released,
            requests=tuple(self.requests),
        )
        return state, tuple(each for each in actions if not isinstance(each, Record)), change

    def saved(self, state: State, change: WorkflowChange | None) -> None:
        """Adopt a saved state."""
        self.state = state
        if change is not None:
            self.version += 1
            self.digest = change.digest
            self._encoder.saved()
        self.pending, self.placed, self.requests = [], {}, []


def first_digest(built: CompiledWorkflow, file: str) -> Json:
    """Return the digest of a workflow that spares reading its text again: shapes, levels, requirements."""
    tasks = [task for gang in built.lowered.gangs for task in gang.all_tasks()]
    shapes = list(dict.fromkeys(task.shape.requests for task in tasks))
    return {
        "file": file,
        **({} if built.pool.traits.embedded else {"backend": built.pool.backend}),
        "gpus": built.gpus,
        "levels": [[level.name, level.label] for level in built.pool.topology.levels],
        "requires": {
            gang.name: levels
            for gang in built.lowered.gangs
            if (levels := list(dict.fromkeys(group.level for group in gang.walk() if group.required)))
        },
        "shapes": [[list(pair) for pair in shape] for shape in shapes],
        "shape_of": {task.name: shapes.index(task.shape.requests) for task in tasks} if len(shapes) > 1 else {},
    }


def home_of(digest: Mapping[str, Any]) -> str:
    """Return the backend whose driver has the tasks of a workflow for its whole life; empty for this machine."""
    return str(digest.get("backend", ""))


def shape_in(digest: Mapping[str, Any], task: str) -> Shape:
    """Return the capacity that a task requests, from a digest."""
    requests = digest["shapes"][digest["shape_of"].get(task, 0)]
    return Shape(requests=tuple((name, amount) for name, amount in requests))


def levels_of(digest: Mapping[str, Any]) -> Topology:
    """Return the levels that a workflow was submitted with."""
    return Topology.of(*((name, label) for name, label in digest.get("levels", ())))
