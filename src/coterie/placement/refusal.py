"""A refusal as data: one reason, what binds, the best that could be done, who is in the way, and checked ways out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coterie.errors import Reason
from coterie.gang.tree import Path
from coterie.placement.engine import Found
from coterie.placement.explain.obstacles import Cause
from coterie.placement.whatif import Change


class Verdict(StrEnum):
    """What the engine says of a gang; the order is from best to worst."""

    PLACED = "placed"
    WAITING = "waiting"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Nearest:
    """How many of the wanted tasks one domain holds."""

    domain: tuple[str, ...]
    fits: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds GPUs in a domain that would otherwise do."""

    owner: str
    gpus: int
    domain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The nodes of a domain, or of the cluster for none, counted by what keeps a task off them.

    `alike` of the tasks that are to be placed have the shape of `task`, `others` have not. `good` nodes take some of
    those alike, `room` of them in all.
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a gang is not placed."""

    reason: Reason
    path: Path = ()
    level: str | None = None
    wanted: int = 0
    domains: int = 0  # how many domains of that level there are
    best: tuple[Nearest, ...] = ()
    holders: tuple[Holder, ...] = ()
    ways_out: tuple[WayOut, ...] = ()
    together: tuple[Path, ...] = ()  # the groups that do not fit with each other
    alone: bool = True  # each of those is known to fit alone
    beside: bool = False  # tasks directly in the group at `path`, or without a group, are among those
    home: tuple[str, ...] = ()  # the domain where the binding group already runs
    around: tuple[str, ...] = ()  # the domain that it cannot leave, because a group around it already runs there
    excluded: tuple[str, ...] = ()  # nodes the user excluded
    unlabelled: int = 0  # eligible nodes without the level's label
    tally: Tally | None = None  # what keeps the tasks off how many nodes
    quota: tuple[int, int] = (0, 0)  # GPUs in use beside this gang, and the pool's limit
    running: tuple[int, int] = (0, 0)  # tasks that run on this machine, and how many may, where that is the matter
    leader: str = ""  # the gang that this one follows, whose tasks are counted as well
    reserved: bool = False  # it would fit, but its room is kept for somebody who has waited longer
    channels: bool = False  # it would fit if a node had more than one NVLink channel


@dataclass(frozen=True, slots=True)
class Decision:
    """The engine's answer for one gang: a placement or a refusal."""

    verdict: Verdict
    found: Found | None = None
    refusal: Refusal | None = None
