"""The unchanging inputs of a workflow's life cycle: groups, order, leads, exit codes, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class Priority(StrEnum):
    """The order of a workflow's groups in the queue, before age."""

    HIGH = "HIGH"
    NORMAL = "NORMAL"
    LOW = "LOW"


class ExitAction(StrEnum):
    """The meaning of an exit code."""

    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    RESCHEDULE = "RESCHEDULE"


@dataclass(frozen=True)
class TaskRules:
    """One task: whether it leads its group, and the exit codes with a meaning defined by the user."""

    name: str
    lead: bool = False
    exits: tuple[tuple[int, ExitAction], ...] = ()

    def meaning(self, exit_code: int) -> ExitAction:
        """Return the meaning of an exit code; unless the user defined it, 0 is success and all else is failure."""
        usual = ExitAction.COMPLETE if exit_code == 0 else ExitAction.FAIL
        return next((action for code, action in self.exits if code == exit_code), usual)


@dataclass(frozen=True)
class GroupRules:
    """One group: its tasks, the groups it waits for, and its time limits in seconds (None is no limit).

    The queue limit covers all waiting from the moment a group could run until it has nodes; the start limit covers the
    time from then until its tasks run; the execution limit starts with the first running task.
    """

    name: str
    tasks: tuple[TaskRules, ...]
    needs: tuple[str, ...] = ()
    barrier: bool = True
    ignore_nonlead_status: bool = True
    queue_timeout_s: float | None = None
    start_timeout_s: float | None = None
    exec_timeout_s: float | None = None

    @cached_property
    def lead(self) -> int:
        """The position of the task that decides when the group is done: the marked one, else the first."""
        return next((index for index, task in enumerate(self.tasks) if task.lead), 0)

    @property
    def held(self) -> bool:
        """Whether tasks that are up wait for `Go` before their commands start."""
        return self.barrier and len(self.tasks) > 1


@dataclass(frozen=True)
class Spec:
    """The inputs of a workflow's life cycle; groups are in a runnable order, and task names are unique.

    `max_reschedules` is how often one task may be rescheduled by its exit code. `max_infrastructure_retries` is how
    often one task is run again after it was lost, which is not charged to the user. `grace_s` is the time between a
    task's request to stop and its forced end.
    """

    groups: tuple[GroupRules, ...]
    priority: Priority = Priority.NORMAL
    max_reschedules: int = 3
    max_infrastructure_retries: int = 5
    grace_s: float = 30.0

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for group in self.groups:
            if not group.tasks:
                raise ValueError(f'group "{group.name}" has no tasks')
            if group.name in seen or not seen.issuperset(group.needs):
                raise ValueError(f'group "{group.name}" occurs twice, or before a group that it needs')
            seen.add(group.name)
        if len(self.places) < sum(len(group.tasks) for group in self.groups):
            raise ValueError("two tasks have the same name")

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The position of each group."""
        return {group.name: index for index, group in enumerate(self.groups)}

    @cached_property
    def dependents(self) -> Mapping[int, tuple[int, ...]]:
        """The positions of the groups that wait for each group; they come after it."""
        found: dict[int, list[int]] = {}
        for index, group in enumerate(self.groups):
            for name in group.needs:
                found.setdefault(self.order[name], []).append(index)
        return {index: tuple(after) for index, after in found.items()}

    @cached_property
    def limited(self) -> tuple[int, ...]:
        """The positions of the groups with time limits."""
        return tuple(
            index
            for index, group in enumerate(self.groups)
            if any(limit is not None for limit in (group.queue_timeout_s, group.start_timeout_s, group.exec_timeout_s))
        )

    @cached_property
    def places(self) -> Mapping[str, tuple[int, int]]:
        """The group and the position in it of each task."""
        return {
            task.name: (index, place)
            for index, group in enumerate(self.groups)
            for place, task in enumerate(group.tasks)
        }
