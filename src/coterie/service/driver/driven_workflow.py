"""One driven workflow: its spec and state, unsaved observations, and its text."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coterie.config.configuration import Pool
from coterie.errors import SpecErrors
from coterie.frontends.workflow.read import Workflow
from coterie.gang.tree import Shape
from coterie.lifecycle import (
    Action,
    Observation,
    Record,
    Released,
    Spec,
    State,
    Status,
    advance,
    from_json,
    to_json,
)
from coterie.service.queue.order import queued_in
from coterie.service.settings import Submission
from coterie.service.submission.compilation import CompiledWorkflow, build, read
from coterie.store import NewEvent, PlacementRecord, Slot, Store, WorkflowChange, WorkflowRecord
from coterie.topology.levels import Topology

Json = dict[str, Any]

# How many texts are cached, and how many bytes of their files.
_TEXTS = 256
_BYTES = 64 << 20


@dataclass(eq=False)
class LiveWorkflow:
    """An unfinished workflow; `pending`, `placed` and `wishes` wait for the next save."""

    id: str
    number: int
    pool: str
    priority: str
    submitted_at: float
    digest: Mapping[str, Any]
    version: int
    spec: Spec
    state: State
    pending: list[Observation] = field(default_factory=list)
    placed: dict[Slot, PlacementRecord] = field(default_factory=dict)
    wishes: list[int] = field(default_factory=list)

    @staticmethod
    def of(stored: WorkflowRecord) -> LiveWorkflow:
        """Return a workflow from the store; raise `UsageError` for an unreadable one."""
        return LiveWorkflow(
            stored.id,
            stored.number,
            stored.pool,
            stored.priority,
            stored.submitted_at,
            stored.digest,
            stored.version,
            from_json(Spec, stored.spec),
            from_json(State, stored.state),
        )

    @property
    def dirty(self) -> bool:
        """Whether there is something to save."""
        return bool(self.pending or self.wishes)

    def next(self, now: float) -> tuple[State, tuple[Action, ...], WorkflowChange | None]:
        """Return the state after all pending observations, the actions that follow, and the change to save."""
        state, actions = advance(self.spec, self.state, self.pending, now)
        if state is self.state and not self.wishes and not self.placed:
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
        change = WorkflowChange(
            id=self.id,
            version=self.version,
            status=state.status.value,
            state=to_json(state),
            started_at=state.started,
            ended_at=state.ended,
            finished=state.finished,
            digest=digest_of(state, self.digest),
            events=events,
            placed=[row for slot, row in self.placed.items() if slot not in gone],
            released=released,
            wishes=tuple(self.wishes),
        )
        return state, tuple(each for each in actions if not isinstance(each, Record)), change

    def saved(self, state: State, change: WorkflowChange | None) -> None:
        """Adopt a saved state."""
        self.state = state
        if change is not None:
            self.version += 1
            self.digest = change.digest
        self.pending, self.placed, self.wishes = [], {}, []


def digest_of(state: State, known: Mapping[str, Any]) -> Json:
    """Return the part of a state that lists show, so that they need not read the state."""
    tasks = [task for group in state.groups for task in group.tasks]
    waits = [group for group in state.groups if group.waiting]
    waiting = next((group for group in waits if group.waiting and group.waiting.never), next(iter(waits), None))
    return {
        **known,
        "message": state.message,
        "cleaning": state.cleaning,
        "queued": queued_in(state, known),
        "waiting": {
            "group": waiting.name,
            "reason": waiting.waiting.reason,
            "message": waiting.waiting.message,
            "since": waiting.waiting.since,
            "never": waiting.waiting.never,
        }
        if waiting and waiting.waiting
        else None,
        "tasks": {
            "total": len(tasks),
            "running": sum(task.status is Status.RUNNING for task in tasks),
            "completed": sum(task.status is Status.COMPLETED for task in tasks),
            "failed": sum(task.status.failed for task in tasks),
        },
    }


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


# Recently submitted workflows: id, parsed workflow, files. Any thread may add one.
Fresh = deque[tuple[str, CompiledWorkflow, Mapping[str, bytes]]]


def nothing_fresh() -> Fresh:
    """Return the buffer of recent submissions; the oldest are dropped."""
    return deque(maxlen=_TEXTS)


class CachedTexts:
    """The texts of driven workflows, read again when needed; the latest are cached.

    Its methods may be called from any thread.
    """

    def __init__(self, store: Store, fresh: Fresh | None = None) -> None:
        self._store = store
        self._fresh = nothing_fresh() if fresh is None else fresh
        self._known: OrderedDict[str, tuple[Workflow, Mapping[str, bytes]]] = OrderedDict()
        self._built: dict[str, CompiledWorkflow] = {}
        self._bytes = 0
        self._lock = threading.RLock()

    def get(self, workflow: str) -> tuple[Workflow, Mapping[str, bytes]]:
        """Return a workflow, and the files that came with it."""
        with self._lock:
            if workflow not in self._known:
                self._take_in()
            if workflow not in self._known:
                upload = self._store.upload(workflow)
                text = Submission(
                    upload.source,
                    upload.file,
                    sets=upload.sets,
                    set_strings=upload.set_strings,
                    amendment=upload.amendment,
                )
                self._remember(workflow, read(text), upload.files)
            self._known.move_to_end(workflow)
            return self._known[workflow]

    def _take_in(self) -> None:
        while self._fresh:
            workflow, built, files = self._fresh.popleft()
            self._remember(workflow, built.workflow, files)
            self._built[workflow] = built

    def _remember(self, workflow: str, text: Workflow, files: Mapping[str, bytes]) -> None:
        self._known[workflow] = text, files
        self._bytes += sum(map(len, files.values()))
        while len(self._known) > _TEXTS or (self._bytes > _BYTES and len(self._known) > 1):
            self.forget(next(iter(self._known)))

    def built(self, workflow: str, pool: Pool, submitted: Topology) -> CompiledWorkflow:
        """Return a workflow compiled for its pool now or, where that lacks levels, as it was submitted."""
        with self._lock:
            self._take_in()
            known = self._built.get(workflow)
            if known is not None and known.pool in (pool, replace(pool, topology=submitted)):
                return known
            text, _ = self.get(workflow)
            try:
                found = build(text, pool)
            except SpecErrors:
                found = build(text, replace(pool, topology=submitted))
            self._built[workflow] = found
            return found

    def forget(self, workflow: str) -> None:
        """Drop a workflow from the cache."""
        with self._lock:
            _, files = self._known.pop(workflow, (None, {}))
            self._bytes -= sum(map(len, files.values()))
            self._built.pop(workflow, None)


def levels_of(digest: Mapping[str, Any]) -> Topology:
    """Return the levels that a workflow was submitted with."""
    return Topology.of(*((name, label) for name, label in digest.get("levels", ())))
