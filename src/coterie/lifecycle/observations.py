"""The observations a workflow receives from the queue, a backend, a user or the clock.

An observation may arrive twice, late, or out of order: an outdated or known one changes nothing. Where its sender knows
when something happened, that time counts, not the time of arrival, since the service may have been down.
"""

from __future__ import annotations

from dataclasses import dataclass

from coterie.lifecycle.status import LossCause


@dataclass(frozen=True, slots=True)
class Submitted:
    """The workflow was accepted and stored."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The queue holds capacity for the request of this number.

    `nodes` are pairs of task and node; tasks whose node another scheduler chooses later are left out.
    """

    group: str
    attempt: int
    nodes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """No capacity is available now; `reason` and `message` are shown as the reason why the group waits.

    Where the others of its domain are known, `together` are all tasks that must share it with the refused ones.
    """

    group: str
    attempt: int
    reason: str
    message: str
    never: bool = False
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rescued:
    """A whole group that its scheduler leaves waiting although it fits is to start again, pinned to these domains.

    `pins` are triples of task, node label and value. Without any, an earlier rescue is undone.
    """

    group: str
    attempt: int
    pins: tuple[tuple[str, str, str], ...]
    message: str


@dataclass(frozen=True, slots=True)
class Released:
    """The queue has removed these tasks of this placement: they are neither queued nor hold capacity."""

    group: str
    attempt: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Created:
    """All objects of a placement exist, or existed: they need not be created again."""

    group: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A task that was placed without a node is now bound to one."""

    task: str
    attempt: int
    node: str


@dataclass(frozen=True, slots=True)
class Up:
    """A task is ready to start its command and waits for `Go`, because its group has a barrier."""

    task: str
    attempt: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A task's command is running, since the time `at` where that is known."""

    task: str
    attempt: int
    node: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A task's command exited by itself, with an exit code (128 + n for signal n).

    It ran from `started` to `at`, as far as these are known.
    """

    task: str
    attempt: int
    exit_code: int
    message: str = ""
    started: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A task has disappeared, or can never start, and has no exit code of its own."""

    task: str
    attempt: int
    cause: LossCause
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """No process or object of this attempt of the task is left."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Gone:
    """No process or object of the group is left; `attempt` is that of the `Delete` answered."""

    group: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """A failed node is healthy again: groups may use it."""

    node: str


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A user, `by` name where known, cancels the workflow; `force` gives its tasks no grace period."""

    message: str = ""
    force: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """A user retries an ended workflow: a task's group with its dependents, or all that failed."""

    task: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed: time limits are checked, so a tick is due at every `deadline`.

    A tick does not override the end of a task that happened before the limit and is reported together with it.
    """


Observation = (
    Submitted
    | Placed
    | Refused
    | Rescued
    | Released
    | Created
    | Scheduled
    | Up
    | Running
    | Ended
    | Lost
    | Stopped
    | Gone
    | Recovered
    | CancelAsked
    | RetryAsked
    | Tick
)
