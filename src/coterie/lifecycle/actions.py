"""What a step asks the outside to do. All but `Record` are idempotent: doing one twice is doing it once.

A number given to a group's placement is never used again, so it is enough to know an action by its name, its group or
task, and that number.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Find a place for these tasks, all or none; answered by `Placed`, meanwhile by `Refused`.

    `anchors` are the group's tasks that stay where they are, with their nodes: the new ones must share their domains. A
    request under a number that is in the queue already replaces the earlier one, and one under a number that is placed
    already changes nothing. `base` is the latest placement of the whole group; it equals `attempt` for a whole group.
    """

    group: str
    attempt: int
    base: int
    tasks: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"enqueue/{self.group}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Release:
    """Forget these tasks of a placement: out of the queue, or their capacity back; answered by `Released`."""

    group: str
    attempt: int
    tasks: tuple[str, ...]

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"release/{self.group}/{self.attempt}/{'+'.join(self.tasks)}"


@dataclass(frozen=True, slots=True)
class Create:
    """Create these tasks of a placement, and the group's own objects under `base` if they are missing.

    Answered by `Created`, or by word from each of the tasks. With `held`, commands wait for `Go`. `tasks` are pairs of
    task and node, for those of which nothing was heard yet; fewer of them are still the same action.
    """

    group: str
    attempt: int
    base: int
    held: bool
    tasks: tuple[tuple[str, str], ...] = field(compare=False)

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"create/{self.group}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Go:
    """Let a task that is up start its command; answered by `Running`, or by its end."""

    task: str
    attempt: int

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"go/{self.task}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Stop:
    """End one task if it runs, and remove its objects; the group's own stay. Answered by `Stopped`."""

    task: str
    attempt: int
    grace_s: float

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"stop/{self.task}/{self.attempt}/{self.grace_s:g}"


@dataclass(frozen=True, slots=True)
class Delete:
    """End whatever runs of a group, and remove all its objects of the numbers from `attempt` to `last`.

    Answered by `Gone` with `attempt`. The upper bound keeps a removal that was asked twice, and is slow the second
    time, from touching what was created meanwhile.
    """

    group: str
    attempt: int
    last: int
    grace_s: float

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"delete/{self.group}/{self.attempt}/{self.grace_s:g}"


@dataclass(frozen=True, slots=True)
class Record:
    """Keep an event for users; part of saving the state, so it is never outstanding. `number` is unique and grows."""

    number: int
    at: float
    kind: str
    message: str
    group: str = ""
    task: str = ""
    attempt: int = 0

    @property
    def id(self) -> str:
        """A name that is the same whenever the action is."""
        return f"record/{self.number}"


Action = Enqueue | Release | Create | Go | Stop | Delete | Record
