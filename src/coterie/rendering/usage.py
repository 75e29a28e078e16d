"""Used and free capacity, per pool and per domain; nodes that pools share count once in the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.rendering.scene import Area, MapScene, SceneNode, Total, ranked

VERSION = 1

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The number of nodes in use (partly or wholly), idle in service, and out of service."""

    allocated: int = 0
    idle: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """The number of all nodes."""
        return self.allocated + self.idle + self.other

    @staticmethod
    def over(spots: Iterable[SceneNode]) -> Nodes:
        """Return the counts of some nodes."""
        kinds = Counter("other" if not spot.in_service else "allocated" if spot.used else "idle" for spot in spots)
        return Nodes(kinds["allocated"], kinds["idle"], kinds["other"])


@dataclass(frozen=True, slots=True)
class Use:
    """The usage of one pool or domain."""

    gpus: Total
    nodes: Nodes

    @staticmethod
    def over(spots: Iterable[SceneNode]) -> Use:
        """Return the usage of some nodes."""
        found = tuple(spots)
        return Use(Total.over(found), Nodes.over(found))


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pool with its nodes in their domains; `about` is the service's record of it, `shared_with` are other pools."""

    scene: MapScene
    about: Mapping[str, Any]
    shared_with: tuple[str, ...] = ()
    shared_nodes: int = 0

    @property
    def name(self) -> str:
        """The name of the pool."""
        return self.scene.pool


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A row of the table: a pool, a domain in it, or the nodes of one that are in no finer domain."""

    pool: str
    path: tuple[str, ...]
    level: str  # empty for a pool
    use: Use
    outside: bool = False  # the nodes in no domain of the level

    @property
    def name(self) -> str:
        """The name that identifies the row."""
        return "/".join((self.pool, *self.path, *([f"(no {self.level})"] if self.outside else [])))


@dataclass(frozen=True, slots=True)
class Usage:
    """The requested pools, their distinct nodes in `total`, and the holders with their GPUs and pools."""

    pools: tuple[PoolUse, ...]
    total: Use
    holders: tuple[tuple[str, int, tuple[str, ...]], ...]


def usage_of(scenes: Sequence[tuple[MapScene, Mapping[str, Any]]]) -> Usage:
    """Return the usage of pools at one moment; nodes are equal where their names and the pools' backends are."""
    spots = [{(str(about.get("backend", "")), spot.name): spot for spot in _spots(scene)} for scene, about in scenes]
    pools = []
    for number, (scene, about) in enumerate(scenes):
        beside = [
            (other.pool, spots[at].keys() & spots[number].keys())
            for at, (other, _) in enumerate(scenes)
            if at != number
        ]
        nodes = set[tuple[str, str]]().union(*(common for _, common in beside))
        pools.append(PoolUse(scene, about, tuple(name for name, common in beside if common), len(nodes)))
    every = {key: spot for found in spots for key, spot in found.items()}
    where: dict[str, dict[str, None]] = {}
    for (scene, _), found in zip(scenes, spots, strict=True):
        for spot in found.values():
            for owner, _ in spot.holders:
                where.setdefault(owner, {})[scene.pool] = None
    held: Counter[str] = Counter()
    for spot in every.values():
        held.update(dict(spot.holders))
    holders = tuple((owner, gpus, tuple(where[owner])) for owner, gpus in ranked(held))
    return Usage(tuple(pools), Use.over(every.values()), holders)


def places(pool: PoolUse, depth: int) -> Iterator[UsageRow]:
    """Yield a pool and its domains down to a depth, each followed by those inside it."""
    yield UsageRow(pool.name, (), "", Use.over(_spots(pool.scene)))
    yield from _inside(pool.scene.root, pool.scene, min(depth, len(pool.scene.levels)))


def flat(pool: PoolUse, depth: int) -> Iterator[UsageRow]:
    """Yield a pool and only its domains of the level at one depth."""
    yield UsageRow(pool.name, (), "", Use.over(_spots(pool.scene)))
    level = pool.scene.levels[depth - 1]
    for area in pool.scene.at(depth):
        yield UsageRow(pool.name, area.path, level, Use.over(area.all_spots()))
    if outside := [spot for area in pool.scene.outside(depth) for spot in area.spots]:
        yield UsageRow(pool.name, (), level, Use.over(outside), outside=True)


def usage_json(usage: Usage, level: str | None) -> Json:
    """Return the usage as data; with a level, only its domains."""
    return {
        "version": VERSION,
        "pools": [
            {
                "name": pool.name,
                "backend": pool.about.get("backend"),
                "shared_with": list(pool.shared_with),
                "shared_nodes": pool.shared_nodes,
                **place_json(rows[0]),
                "domains": [
                    {"level": row.level, "path": list(row.path), "outside": row.outside, **place_json(row)}
                    for row in rows[1:]
                ],
            }
            for pool in usage.pools
            for rows in (list(rows_of(pool, level)),)
        ],
        "total": _use_json(usage.total),
        "holders": [{"owner": owner, "gpus": gpus, "pools": list(pools)} for owner, gpus, pools in usage.holders],
    }


def rows_of(pool: PoolUse, level: str | None, depth: int | None = None) -> Iterator[UsageRow]:
    """Yield a pool with the domains of a level, or with all of them, down to a depth."""
    if level is None:
        return places(pool, len(pool.scene.levels) if depth is None else depth)
    if level not in pool.scene.levels:
        return places(pool, 0)
    return flat(pool, pool.scene.levels.index(level) + 1)


def place_json(place: UsageRow) -> Json:
    """Return the numbers of a row as data."""
    return _use_json(place.use)


def _use_json(use: Use) -> Json:
    gpus, nodes = use.gpus, use.nodes
    return {
        "gpus": {
            "used": gpus.used,
            "free": gpus.free,
            "out_of_service": gpus.out,
            "total": gpus.gpus,
        },
        "nodes": {"allocated": nodes.allocated, "idle": nodes.idle, "other": nodes.other, "total": nodes.total},
    }


def _inside(area: Area, scene: MapScene, depth: int) -> Iterator[UsageRow]:
    at = len(area.path)
    if at >= depth:
        return
    level = scene.levels[at]
    for below in area.areas:
        yield UsageRow(scene.pool, below.path, level, Use.over(below.all_spots()))
        yield from _inside(below, scene, depth)
    if area.spots and area.areas:
        yield UsageRow(scene.pool, area.path, level, Use.over(area.spots), outside=True)


def _spots(scene: MapScene) -> Iterator[SceneNode]:
    return scene.root.all_spots()
