"""The state of a running workflow as one value, which a service stores, shows, and passes to the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coterie.lifecycle.spec import Spec
from coterie.lifecycle.status import Presence, Status

# Objects of the task may exist, or capacity may be held for it.
_HOLDING = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An earlier attempt of a task."""

    attempt: int
    status: Status
    node: str = ""
    exit_code: int | None = None
    message: str = ""
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task and its latest attempt.

    `attempt` is the number of the placement that the attempt belongs to, 0 before the first: it grows with each attempt
    and may skip numbers, because a group counts its placements and not every placement includes every task. `up` is set
    while the task waits for the other tasks of its group before its command starts. `queued` is when it began to wait
    for capacity, `placed` when it got a node.
    """

    name: str
    status: Status = Status.SUBMITTING
    attempt: int = 0
    presence: Presence = Presence.ABSENT
    up: bool = False
    node: str = ""
    exit_code: int | None = None
    message: str = ""
    reschedules: int = 0
    losses: int = 0
    queued: float | None = None
    placed: float | None = None
    started: float | None = None
    ended: float | None = None
    past: tuple[PastAttempt, ...] = ()

    @property
    def present(self) -> bool:
        """Whether the task holds capacity and is not being removed."""
        return self.presence in (Presence.PLACED, Presence.CREATED)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The reason why a group is not placed yet, as the queue states it; `reason` is one of Coterie's reason codes.

    With `never` it waits until its pool changes.
    """

    reason: str
    message: str
    since: float
    never: bool = False


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group. `attempt` is the latest placement, `base` the latest one of the whole group, 0 before the first.

    `queued`, `started` and `ended` refer to the whole group since `base`. `excluded` are nodes that failed under it.
    `pins` are the node labels, as triples of task, label and value, to which a rescue restricts its tasks.
    """

    name: str
    tasks: tuple[TaskState, ...]
    status: Status = Status.SUBMITTING
    attempt: int = 0
    base: int = 0
    excluded: tuple[str, ...] = ()
    pins: tuple[tuple[str, str, str], ...] = ()
    waiting: Waiting | None = None
    message: str = ""
    queued: float | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def cleaning(self) -> bool:
        """Whether the result is known while objects or capacity are still to be removed."""
        return self.status.final and any(task.presence is not Presence.ABSENT for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Cancel:
    """A user's request to end the workflow now; `by` is the user's name where it is known."""

    at: float
    message: str = ""
    force: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A workflow. `events` counts the recorded events, so that each has its own number.

    `started` and `ended` are those of the latest run: a retry begins another one.
    """

    groups: tuple[GroupState, ...]
    status: Status = Status.PENDING
    message: str = ""
    cancel: Cancel | None = None
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    events: int = 0

    @property
    def cleaning(self) -> bool:
        """Whether the result is known while objects or capacity are still to be removed."""
        return self.status.final and any(group.cleaning for group in self.groups)

    @property
    def finished(self) -> bool:
        """Whether the state can change only through a retry by a user."""
        return self.status.final and not self.cleaning


@dataclass(frozen=True, slots=True)
class Holding:
    """Capacity that a task holds, or may hold, on a node; the node is empty until the scheduler has chosen one."""

    group: str
    task: str
    attempt: int
    node: str


def initial(spec: Spec) -> State:
    """Return the state of a workflow before its submission."""
    return State(
        tuple(GroupState(group.name, tuple(TaskState(task.name) for task in group.tasks)) for group in spec.groups)
    )


def by_task(pins: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """Return the node labels of pins, by task."""
    found: dict[str, dict[str, str]] = {}
    for task, label, value in pins:
        found.setdefault(task, {})[label] = value
    return found


def holdings(state: State) -> Iterator[Holding]:
    """Yield the capacity in use, from which a queue without stored state is filled after a restart."""
    for group in state.groups:
        for task in group.tasks:
            if task.presence in _HOLDING:
                yield Holding(group.name, task.name, task.attempt, task.node)
