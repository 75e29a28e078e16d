"""The actions that a step requests; all but `Record` are idempotent.

The number of a group's placement is never reused, so an action is identified by its name, its group or task, and that
number.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Find nodes for these tasks, all or none; answered by `Placed`, and by `Refused` until then.

    `anchors` are the group's tasks that stay on their nodes: the new tasks must share their domains. A request under a
    number that is already queued replaces the earlier one; a request under a number that is already placed changes
    nothing. `base` is the latest placement of the whole group; it equals `attempt` for a whole group.
    """

    group: str
    attempt: int
    base: int
    tasks: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"enqueue/{self.group}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class ReleaseTasks:
    """Remove these tasks of a placement from the queue, or return their capacity; answered by `Released`."""

    group: str
    attempt: int
    tasks: tuple[str, ...]

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"release/{self.group}/{self.attempt}/{'+'.join(self.tasks)}"


@dataclass(frozen=True, slots=True)
class Create:
    """Create these tasks of a placement, and the group's own objects under `base` if they are missing.

    Answered by `Created`, or by an observation of each task. With `held`, commands wait for `Go`. `tasks` are pairs of
    task and node, for those without an observation so far; with fewer of them it is still the same action.
    """

    group: str
    attempt: int
    base: int
    held: bool
    tasks: tuple[tuple[str, str], ...] = field(compare=False)

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"create/{self.group}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Go:
    """Start the command of a task that is up; answered by `Running`, or by the task's end."""

    task: str
    attempt: int

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"go/{self.task}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop one task if it runs, and delete its objects but not the group's own; answered by `Stopped`."""

    task: str
    attempt: int
    grace_s: float

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"stop/{self.task}/{self.attempt}/{self.grace_s:g}"


@dataclass(frozen=True, slots=True)
class Delete:
    """Stop the running tasks of a group, and delete all its objects of the placements from `attempt` to `last`.

    Answered by `Gone` with `attempt`. The upper bound protects objects created later from a repeated deletion that is
    delayed.
    """

    group: str
    attempt: int
    last: int
    grace_s: float

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"delete/{self.group}/{self.attempt}/{self.grace_s:g}"


@dataclass(frozen=True, slots=True)
class Record:
    """Store an event for users, together with the state, so never outstanding; `number` is unique and increases."""

    number: int
    at: float
    kind: str
    message: str
    group: str = ""
    task: str = ""
    attempt: int = 0

    @property
    def id(self) -> str:
        """The identity of the action, the same for each repetition."""
        return f"record/{self.number}"


Action = Enqueue | ReleaseTasks | Create | Go | Stop | Delete | Record
