"""Steps in progress: the only mutable object of this package, discarded at their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    """A state under change by one or more observations, with the events that describe the change.

    `now` is when an observation arrives, `at` when it happened: the same, unless the observation states a time. The
    tasks of a changed group are kept in a list, so that a change of one costs the same in a group of any size: they are
    read with `tasks`, and not from the group.
    """

    def __init__(self, spec: Spec, state: State, now: float) -> None:
        self.spec = spec
        self.now = self.at = now
        self.before = state
        self.groups = list(state.groups)
        self.cancel: Cancel | None = state.cancel
        self.submitted = state.submitted
        self.started = state.started
        self.records: list[Record] = []
        self._recorded = state.events
        self._tasks: dict[int, list[TaskState]] = {}
        self._counts: dict[int, Counter[Status]] = {}
        self._touched: set[int] = set()

    @property
    def events(self) -> int:
        """The number of events recorded so far."""
        return self._recorded + len(self.records)

    def rules(self, index: int) -> GroupRules:
        """Return the unchanging rules of a group."""
        return self.spec.groups[index]

    def tasks(self, index: int) -> Sequence[TaskState]:
        """Return the tasks of a group."""
        return self._tasks.get(index) or self.groups[index].tasks

    def count(self, index: int, *statuses: Status) -> int:
        """Return how many tasks of a group have one of these statuses."""
        counts = self._counted(index)
        return sum(counts[status] for status in statuses)

    def cleaning(self, index: int) -> bool:
        """Return whether the result of a group is known while objects or capacity are still to be removed."""
        return self.groups[index].status.final and any(
            task.presence is not Presence.ABSENT for task in self.tasks(index)
        )

    def touched(self) -> list[int]:
        """Return the groups that were changed since the last call."""
        found, self._touched = sorted(self._touched), set()
        return found

    def record(self, kind: str, message: str, group: GroupState, task: TaskState | None = None) -> None:
        """Record an event of a group, or of one of its tasks, for users."""
        name, attempt = (task.name, task.attempt) if task else ("", group.attempt)
        self.records.append(Record(self.events + 1, self.now, kind, message, group.name, name, attempt))

    def task(self, index: int, place: int, **changes: Any) -> TaskState:  # noqa: ANN401 - checked by replace
        """Replace fields of one task and return it."""
        if (tasks := self._tasks.get(index)) is None:
            tasks = self._tasks[index] = list(self.groups[index].tasks)
        before = tasks[place]
        task = tasks[place] = replace(before, **changes)
        if task.status is not before.status and (counts := self._counts.get(index)) is not None:
            counts[before.status] -= 1
            counts[task.status] += 1
        self._touched.add(index)
        return task

    def group(self, index: int, **changes: Any) -> GroupState:  # noqa: ANN401 - checked by replace
        """Replace fields of a group and return it."""
        if "tasks" in changes:
            self._tasks.pop(index, None)
            self._counts.pop(index, None)
        self.groups[index] = replace(self.groups[index], **changes)
        self._touched.add(index)
        return self.groups[index]

    def whole_groups(self) -> tuple[GroupState, ...]:
        """Return all groups with their tasks."""
        for index, tasks in self._tasks.items():
            self.groups[index] = replace(self.groups[index], tasks=tuple(tasks))
        self._tasks.clear()
        return tuple(self.groups)

    def _counted(self, index: int) -> Counter[Status]:
        if (found := self._counts.get(index)) is None:
            found = self._counts[index] = Counter(task.status for task in self.tasks(index))
        return found


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
