"""A refusal as data: one reason, the binding group, the nearest domains, the holders, and verified remedies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coterie.errors import Reason
from coterie.gang.tree import Path
from coterie.placement.engine import Found
from coterie.placement.explain.obstacles import Cause
from coterie.placement.option import Option
from coterie.placement.whatif import Change, options


class Verdict(StrEnum):
    """The engine's verdict on a gang, ordered from best to worst."""

    PLACED = "placed"
    WAITING = "waiting"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The number of the requested tasks that one domain holds."""

    domain: tuple[str, ...]
    fits: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder of GPUs in a domain that would otherwise be feasible."""

    owner: str
    gpus: int
    domain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The nodes of a domain, or of the cluster for none, counted by the obstacle of a task.

    Of the tasks to be placed, `alike` have the shape of `task`, and `others` have not. `good` nodes take some of those
    alike, `room` of them in total.
    """

    task: str
    alike: int
    others: int
    domain: tuple[str, ...]
    nodes: int
    good: int
    room: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class WayOut:
    """A change after which the engine places the gang: now, or at least on the empty cluster."""

    change: Change
    now: bool

    @property
    def options(self) -> tuple[Option, ...]:
        """The parameters that ask about the change."""
        return options(self.change)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a gang is not placed."""

    reason: Reason
    path: Path = ()
    level: str | None = None
    wanted: int = 0
    domains: int = 0  # the number of domains of that level
    best: tuple[Nearest, ...] = ()
    holders: tuple[Holder, ...] = ()
    ways_out: tuple[WayOut, ...] = ()
    together: tuple[Path, ...] = ()  # the groups that do not fit with each other
    alone: bool = True  # each of those is known to fit alone
    beside: bool = False  # tasks directly in the group at `path`, or without a group, are among those
    home: tuple[str, ...] = ()  # the domain where the binding group already runs
    around: tuple[str, ...] = ()  # the domain that it cannot leave, because an enclosing group already runs there
    excluded: tuple[str, ...] = ()  # nodes the user excluded
    unlabelled: int = 0  # eligible nodes without the level's label
    hidden: int = 0  # eligible nodes hidden from the scheduler, where all of them are
    tally: Tally | None = None  # the obstacles of the tasks, by number of nodes
    quota: tuple[int, int] = (0, 0)  # GPUs in use beside this gang, and the pool's limit
    running: tuple[int, int] = (0, 0)  # tasks that run on this machine, and their limit, where that is the reason
    leader: str = ""  # the gang that this one follows, whose tasks are counted as well
    reserved: bool = False  # it would fit, but the capacity is reserved for a gang that has waited longer
    channels: bool = False  # it would fit if a node had more than one NVLink channel


@dataclass(frozen=True, slots=True)
class Decision:
    """The engine's answer for one gang: a placement or a refusal."""

    verdict: Verdict
    found: Found | None = None
    refusal: Refusal | None = None
