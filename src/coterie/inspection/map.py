"""The scene of a cluster for drawing, and its JSON for scripts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.rendering.scene import Area, MapScene, SceneNode, Total, ranked
from coterie.topology.cluster import Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import HOSTNAME, Topology

VERSION = 1

Json = dict[str, Any]


def level_depth(domains: Domains, name: str) -> int:
    """Return the number of levels down to the named one; raise when it is unknown or has no nodes."""
    names = domains.topology.names
    if name not in names:
        known = f"Levels are: {', '.join(names)}." if names else "There are no levels; give some with --levels."
        raise UsageError(f'there is no level "{name}"', f"{did_you_mean(name, names)} {known}".strip())
    depth = domains.topology.index(name) + 1
    if not len(domains.tiers[depth - 1]):
        label = domains.topology.label(name)
        there = [each for each, tier in zip(names, domains.tiers, strict=True) if len(tier)]
        hint = f"Levels that nodes are in: {', '.join(there)}." if there else "No node is in a domain of any level."
        raise NotFound(f'no node is in a domain of level "{name}" (label "{label}")', f"{hint} See `coterie check`.")
    return depth


def default_depth(domains: Domains) -> int:
    """Return the number of levels a map shows: down to the finest with domains of more than one node."""
    for depth in range(len(domains.tiers), 0, -1):
        host = domains.topology.levels[depth - 1].label == HOSTNAME
        if len(domains.tiers[depth - 1]) and not (host and depth > 1):
            return depth
    return 0


def find_holder(cluster: Cluster, name: str) -> str:
    """Return the GPU holder that a user named: by its full name, or by the part after its namespace."""
    gpus = cluster.gpus(cluster.pod_requests)
    holders = {pod.owner for index, pod in enumerate(cluster.pods) if gpus[index] > 0}
    if name in holders:
        return name
    short = sorted(holder for holder in holders if holder.rpartition("/")[2] == name)
    if len(short) == 1:
        return short[0]
    if short:
        raise UsageError(f'"{name}" matches several holders', f"Name one of: {', '.join(short[:8])}.")
    known = f"Holders are: {', '.join(sorted(holders))}." if 0 < len(holders) <= 8 else ""
    guess = did_you_mean(name, sorted(holders)) if len(holders) <= 1000 else ""
    hint = f"{guess} {known}".strip() if holders else "No GPU is in use."
    raise NotFound(f'there is no holder "{name}"', hint)


def scene_of(domains: Domains, depth: int, *, pool: str = "", highlight: str | None = None) -> MapScene:
    """Return the scene of a cluster, down to the level at `depth`."""
    spots = _spots(domains)
    tiers = domains.tiers[:depth]
    areas: list[Area] = []
    # From the finest tier up, each domain gets the areas below it and its nodes outside those areas.
    for level in range(depth - 1, -1, -1):
        below: dict[int, list[int]] = {}
        if level + 1 < depth:
            for child, parent in enumerate(tiers[level + 1].parent.tolist()):
                below.setdefault(parent, []).append(child)
        areas = [
            _area(
                values, start, end, [(tiers[level + 1], child, areas[child]) for child in below.get(index, ())], spots
            )
            for index, (values, start, end) in enumerate(
                zip(tiers[level].values, tiers[level].start.tolist(), tiers[level].end.tolist(), strict=True)
            )
        ]
    children = [(tiers[0], index, area) for index, area in enumerate(areas)] if depth else []
    root = _area((), 0, len(domains), children, spots)
    return MapScene(domains.topology.names[:depth], root, pool, highlight)


def map_json(scene: MapScene, topology: Topology, *, guessed: bool) -> Json:
    """Return a map as data: nested domains, each with its own nodes; top-level `nodes` are in no domain."""
    return {
        "version": VERSION,
        "pool": scene.pool,
        "levels": [{"name": level.name, "label": level.label} for level in topology.levels[: len(scene.levels)]],
        "guessed": guessed,
        **_area_json(scene.root, scene),
    }


def _area(values: tuple[str, ...], start: int, end: int, children: list[Any], spots: list[SceneNode]) -> Area:
    # The nodes of a domain that are in no finer one come after those that are.
    rest = max((int(tier.end[index]) for tier, index, _ in children), default=start)
    return Area(values, tuple(area for _, _, area in children), tuple(spots[rest:end]))


def _spots(domains: Domains) -> list[SceneNode]:
    cluster = domains.cluster
    offered = cluster.gpus(cluster.allocatable)
    held: dict[int, Counter[str]] = {}
    for pod, node, gpus in zip(
        cluster.pods, cluster.pod_node.tolist(), cluster.gpus(cluster.pod_requests).tolist(), strict=True
    ):
        if gpus > 0:
            held.setdefault(node, Counter())[pod.owner] += gpus
    spots = []
    for node in domains.order.tolist():
        holders = ranked(held.get(node, Counter()))
        spots.append(
            SceneNode(
                cluster.names[node],
                int(offered[node]),
                holders,
                bool(cluster.cordoned[node]),
                bool(cluster.ready[node]),
            )
        )
    return spots


def _area_json(area: Area, scene: MapScene) -> Json:
    depth = len(area.path)
    named = {"level": scene.levels[depth - 1], "value": area.path[-1], "path": list(area.path)} if depth else {}
    return {
        **named,
        "node_count": area.total.nodes,
        "gpus": _gpus(area.total),
        "holders": _holders(area.total),
        "domains": [_area_json(each, scene) for each in area.areas],
        "nodes": [_spot_json(spot) for spot in area.spots],
    }


def _spot_json(spot: SceneNode) -> Json:
    total = Total.over([spot])
    return {
        "name": spot.name,
        "gpus": _gpus(total),
        "holders": _holders(total),
        "cordoned": spot.cordoned,
        "ready": spot.ready,
    }


def _gpus(total: Total) -> Json:
    return {"used": total.used, "free": total.free, "out_of_service": total.out, "total": total.gpus}


def _holders(total: Total) -> list[Json]:
    return [{"owner": owner, "gpus": gpus} for owner, gpus in total.holders]
