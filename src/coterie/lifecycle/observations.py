"""What a workflow can be told, by the queue, a back end, a user or the clock.

Every observation may come twice, late, or in any order: what is old or known already changes nothing. Where the one who
tells knows when something happened, that counts, however late it is heard: nobody may have been there to listen.
"""

from __future__ import annotations

from dataclasses import dataclass

from coterie.lifecycle.status import Cause


@dataclass(frozen=True, slots=True)
class Submitted:
    """The workflow was accepted and stored."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The queue holds capacity for what was asked under this number.

    `nodes` are pairs of task and node; tasks whose node another scheduler chooses later are left out.
    """

    group: str
    attempt: int
    nodes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no place now. `reason` and `message` are shown as why the group waits."""

    group: str
    attempt: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Released:
    """The queue has forgotten these tasks of this placement: they are neither in it nor do they hold capacity."""

    group: str
    attempt: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Created:
    """All objects of a placement exist, or did: creating them again is not needed."""

    group: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A task that was placed without a node has one now."""

    task: str
    attempt: int
    node: str


@dataclass(frozen=True, slots=True)
class Up:
    """A task is ready to start its command and waits for a word, because its group has a barrier."""

    task: str
    attempt: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A task's command runs, since the time `at` where that is known."""

    task: str
    attempt: int
    node: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A task's command ended by itself, with an exit code (128 + n for signal n).

    It ran from `started` to `at`, as far as that is known.
    """

    task: str
    attempt: int
    exit_code: int
    message: str = ""
    started: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A task is gone, or can never start, and has no exit code of its own."""

    task: str
    attempt: int
    cause: Cause
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing of this attempt of the task runs or exists any more."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of the group runs or exists any more; `attempt` is the one that was asked to be deleted."""

    group: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """A node that had failed is well again: nothing need keep away from it any more."""

    node: str


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A user, `by` name where it is known, wants the workflow to end; `force` gives its tasks no time to do so."""

    message: str = ""
    force: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """A user wants a workflow that ended to go on: a task's group with what hangs on it, or all that failed."""

    task: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed. This makes time limits count, so it must come when `deadline` says so.

    It does not undo what ended in time and is told together with it.
    """


Observation = (
    Submitted
    | Placed
    | Refused
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
