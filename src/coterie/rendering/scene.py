"""The content of a drawing: nodes with their GPUs and holders, in nested domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from coterie.topology.abbreviations import Abbreviations


@dataclass(frozen=True, slots=True)
class SceneNode:
    """One node; `gpus` is its allocatable number, which pods may exceed; `holders` come largest first."""

    name: str
    gpus: int
    holders: tuple[tuple[str, int], ...] = ()
    cordoned: bool = False
    ready: bool = True

    @property
    def used(self) -> int:
        """GPUs that pods hold."""
        return sum(gpus for _, gpus in self.holders)

    @property
    def idle(self) -> int:
        """GPUs that no pod holds, in service or not."""
        return max(0, self.gpus - self.used)

    @property
    def overfull(self) -> bool:
        """Whether pods hold more GPUs than it has, as on a node that has lost some."""
        return self.used > self.gpus

    @property
    def in_service(self) -> bool:
        """Whether new work may start here."""
        return self.ready and not self.cordoned

    @property
    def free(self) -> int:
        """GPUs that are available to new work."""
        return self.idle if self.in_service else 0


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over nodes; idle GPUs on nodes out of service are neither used nor free."""

    nodes: int = 0
    gpus: int = 0
    used: int = 0
    free: int = 0
    whole: int = 0  # nodes in service with all of their GPUs free
    cordoned: int = 0
    not_ready: int = 0
    out: int = 0  # idle GPUs on nodes out of service
    overfull: int = 0  # nodes whose pods hold more GPUs than they have
    holders: tuple[tuple[str, int], ...] = ()

    @property
    def usable(self) -> int:
        """GPUs that are used or free."""
        return self.used + self.free

    @staticmethod
    def over(spots: Iterable[SceneNode], parts: Iterable[Total] = ()) -> Total:
        """Return the sums over nodes and partial sums."""
        sums: Counter[str] = Counter()
        held: Counter[str] = Counter()
        for spot in spots:
            sums["nodes"] += 1
            sums["gpus"] += spot.gpus
            sums["used"] += spot.used
            sums["free"] += spot.free
            sums["whole"] += spot.gpus > 0 and spot.free == spot.gpus
            sums["cordoned"] += spot.cordoned
            sums["not_ready"] += not spot.ready and not spot.cordoned
            sums["out"] += spot.idle - spot.free
            sums["overfull"] += spot.overfull
            held.update(dict(spot.holders))
        for part in parts:
            for name in ("nodes", "gpus", "used", "free", "whole", "cordoned", "not_ready", "out", "overfull"):
                sums[name] += getattr(part, name)
            held.update(dict(part.holders))
        return Total(**sums, holders=ranked(held))


@dataclass(frozen=True, eq=False)
class Area:
    """A domain, by its label values from the coarsest level down; the root, with none, is the whole cluster.

    `spots` are the nodes that are in this domain and in no finer one.
    """

    path: tuple[str, ...] = ()
    areas: tuple[Area, ...] = ()
    spots: tuple[SceneNode, ...] = ()

    @cached_property
    def total(self) -> Total:
        """Sums over all nodes inside."""
        return Total.over(self.spots, (area.total for area in self.areas))

    def walk(self) -> Iterator[Area]:
        """Yield this domain and all inside it, parents first."""
        yield self
        for area in self.areas:
            yield from area.walk()

    def all_spots(self) -> Iterator[SceneNode]:
        """Yield every node inside."""
        for area in self.walk():
            yield from area.spots


@dataclass(frozen=True, eq=False)
class MapScene:
    """A cluster divided into levels, coarsest first."""

    levels: tuple[str, ...]
    root: Area
    pool: str = ""
    highlight: str | None = None  # the highlighted holder

    def named(self, area: Area, short: Abbreviations) -> str:
        """Return the name of a domain: its level and value, or the value alone where it already shows the level."""
        if not area.path:
            return "all nodes"
        level, value = self.levels[len(area.path) - 1], short.name(area.path[-1])
        return value if value.casefold().startswith(level.casefold()) else f"{level} {value}"

    def at(self, depth: int) -> tuple[Area, ...]:
        """Return the domains of a level; depth 1 is the coarsest, 0 the cluster itself."""
        return tuple(area for area in self.root.walk() if len(area.path) == depth)

    def outside(self, depth: int) -> tuple[Area, ...]:
        """Return the nodes that are in no domain of a level, by the finest domain they are in."""
        return tuple(
            Area(area.path, spots=area.spots) for area in self.root.walk() if len(area.path) < depth and area.spots
        )

    def largest_free(self, depth: int) -> Area | None:
        """Return the domain of a level with the most free GPUs; None where no GPU is free."""
        best = max(self.at(depth), key=lambda area: area.total.free, default=None)
        return best if best is not None and best.total.free else None


def abbreviations(scenes: Iterable[MapScene]) -> Abbreviations:
    """Return the short forms of the names in some scenes together: domains by their level, and nodes."""
    kinds: dict[str, set[str]] = {}
    nodes: set[str] = set()
    for scene in scenes:
        for area in scene.root.walk():
            nodes.update(spot.name for spot in area.spots)
            if area.path:
                kinds.setdefault(scene.levels[len(area.path) - 1], set()).add(area.path[-1])
    return Abbreviations(*kinds.values(), nodes)


def ranked(held: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return holders with their amounts, largest first, equal ones by name."""
    return tuple(sorted(((name, gpus) for name, gpus in held.items() if gpus), key=lambda pair: (-pair[1], pair[0])))
