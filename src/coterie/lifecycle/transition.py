"""One step in progress: the only mutable object of this package, discarded at the end of the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coterie.lifecycle.actions import Record
from coterie.lifecycle.spec import GroupRules, Spec
from coterie.lifecycle.state import Cancel, GroupState, PastAttempt, State, TaskState
from coterie.lifecycle.status import Presence, Status

_LEAVING = {
    Presence.QUEUED: Presence.RETURNING,
    Presence.PLACED: Presence.DELETING,
    Presence.CREATED: Presence.DELETING,
    Presence.STOPPING: Presence.DELETING,
}


class Transition:
    """A state under change, with the events that describe the change.

    `now` is when an observation arrives, `at` when it happened: the same, unless the observation states a time.
    """

    def __init__(self, spec: Spec, state: State, now: float, at: float | None = None) -> None:
        self.spec = spec
        self.now = now
        self.at = now if at is None else min(at, now)
        self.before = state
        self.groups = list(state.groups)
        self.cancel: Cancel | None = state.cancel
        self.submitted = state.submitted
        self.started = state.started
        self.records: list[Record] = []

    def rules(self, index: int) -> GroupRules:
        """Return the unchanging rules of a group."""
        return self.spec.groups[index]

    def record(self, kind: str, message: str, group: GroupState, task: TaskState | None = None) -> None:
        """Record an event of a group, or of one of its tasks, for users."""
        number = self.before.events + len(self.records) + 1
        name, attempt = (task.name, task.attempt) if task else ("", group.attempt)
        self.records.append(Record(number, self.now, kind, message, group.name, name, attempt))

    def task(self, index: int, place: int, **changes: Any) -> TaskState:  # noqa: ANN401 - checked by replace
        """Replace fields of one task and return it."""
        group = self.groups[index]
        task = replace(group.tasks[place], **changes)
        self.groups[index] = replace(group, tasks=(*group.tasks[:place], task, *group.tasks[place + 1 :]))
        return task

    def group(self, index: int, **changes: Any) -> GroupState:  # noqa: ANN401 - checked by replace
        """Replace fields of a group and return it."""
        self.groups[index] = replace(self.groups[index], **changes)
        return self.groups[index]


def leaving(presence: Presence) -> Presence:
    """Return the presence of a task once its whole group is to be removed."""
    return _LEAVING.get(presence, presence)


def archived(task: TaskState, status: Status, now: float) -> TaskState:
    """Return a task with its latest attempt, if any, moved to its history under the status to be shown there.

    Its number, node and presence stay until the next attempt begins, since objects may still have to be removed.
    """
    known = bool(task.past) and task.past[-1].attempt == task.attempt
    past = task.past
    if task.attempt and not known and (task.present or task.status.final):
        last = PastAttempt(
            task.attempt, status, task.node, task.exit_code, task.message, task.started, task.ended or now
        )
        past = (*past, last)
    return replace(
        task, up=False, exit_code=None, message="", placed=None, started=None, ended=None, queued=None, past=past
    )
