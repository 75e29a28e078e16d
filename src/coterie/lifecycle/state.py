"""All that is known of a running workflow, as one value: what a service stores, shows, and hands to the next step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coterie.lifecycle.spec import Spec
from coterie.lifecycle.status import Presence, Status

# Objects of the task may exist, or capacity may be held for it.
_HOLDING = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class Past:
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
    and may skip numbers, because a group counts its placements and not every one is of every task. `up` says that the
    task waits for its group's others before its command starts. `queued` is when it began to wait for a place,
    `placed` when it got one.
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
    past: tuple[Past, ...] = ()

    @property
    def present(self) -> bool:
        """Whether the task has a place and keeps it."""
        return self.presence in (Presence.PLACED, Presence.CREATED)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a group has no place yet, in the queue's words; `reason` is from Coterie's closed list."""

    reason: str
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group. `attempt` is the latest placement, `base` the latest one of the whole group, 0 before the first.

    `queued`, `started` and `ended` speak of the whole group since `base`. `excluded` are nodes that failed under it.
    """

    name: str
    tasks: tuple[TaskState, ...]
    status: Status = Status.SUBMITTING
    attempt: int = 0
    base: int = 0
    excluded: tuple[str, ...] = ()
    waiting: Waiting | None = None
    message: str = ""
    queued: float | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def cleaning(self) -> bool:
        """Whether the result is known and something is still being removed or given back."""
        return self.status.final and any(task.presence is not Presence.ABSENT for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Cancel:
    """A user's wish that the workflow end now; `by` is the user's name where it is known."""

    at: float
    message: str = ""
    force: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A workflow. `events` counts the events recorded so far, so that each has a number of its own.

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
        """Whether the result is known and something is still being removed or given back."""
        return self.status.final and any(group.cleaning for group in self.groups)

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again unless a user asks for a retry."""
        return self.status.final and not self.cleaning


@dataclass(frozen=True, slots=True)
class Holding:
    """Capacity that a task has, or may have, on a node; the node is empty where the scheduler has not said it yet."""

    group: str
    task: str
    attempt: int
    node: str


def initial(spec: Spec) -> State:
    """Return the state of a workflow that nobody has submitted yet."""
    return State(
        tuple(GroupState(group.name, tuple(TaskState(task.name) for task in group.tasks)) for group in spec.groups)
    )


def holdings(state: State) -> Iterator[Holding]:
    """Yield the capacity in use, from which a queue that kept nothing over a restart is filled again."""
    for group in state.groups:
        for task in group.tasks:
            if task.presence in _HOLDING:
                yield Holding(group.name, task.name, task.attempt, task.node)
