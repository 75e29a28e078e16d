"""`coterie pool map`: the nodes of a pool as its service sees them now."""

from __future__ import annotations

from typing import Any

from coterie.cli.client.client import Client
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.map import MapData, View, draw, snapshot_data
from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.rendering.scene import Area, MapScene, SceneNode

Json = dict[str, Any]


def draw_pool(client: Client, pool: str, view: View, output: Drawing) -> None:
    """Print the map of a pool."""
    found = client.map(pool)
    scene = scene_of(found, view)

    def snapshot() -> Json:
        return snapshot_data(_cut(client.nodes(pool), len(scene.levels)), client.url, view.workload, ())

    draw(scene, view, output, MapData(lambda: found, snapshot))


def scene_of(found: Json, view: View) -> MapScene:
    """Return the scene of a service's map, down to the requested level."""
    levels = [str(level["name"]) for level in found["levels"]]
    depth = len(levels)
    if view.level is not None:
        if view.level not in levels:
            known = f"Levels are: {', '.join(levels)}." if levels else "The pool has no levels."
            raise UsageError(f'there is no level "{view.level}"', f"{did_you_mean(view.level, levels)} {known}".strip())
        depth = levels.index(view.level) + 1
    holders = [str(one["owner"]) for one in found["holders"]]
    if view.workload is not None and view.workload not in holders:
        known = f"Holders are: {', '.join(holders)}." if 0 < len(holders) <= 8 else ""
        hint = f"{did_you_mean(view.workload, holders)} {known}".strip() if holders else "No GPU is in use."
        raise NotFound(f'there is no holder "{view.workload}"', hint)
    return MapScene(tuple(levels[:depth]), _area(found, depth), str(found["pool"]), view.workload)


def _cut(nodes: Json, depth: int) -> Json:
    """Return a list of nodes whose domains are of the first levels only; coarser domains come first in it."""
    domains = [each for each in nodes["domains"] if each["level"] < depth]

    def coarser(domain: int) -> int:
        while domain >= len(domains):
            domain = nodes["domains"][domain]["parent"]
        return domain

    listed = [{**node, "domain": coarser(node["domain"])} for node in nodes["nodes"]]
    return {**nodes, "levels": nodes["levels"][:depth], "domains": domains, "nodes": listed}


def _area(found: Json, depth: int) -> Area:
    """Return a domain; at the last shown level it contains all nodes of finer ones."""
    path = tuple(map(str, found.get("path", ())))
    areas = tuple(_area(below, depth) for below in found["domains"])
    spots = tuple(map(_spot, found["nodes"]))
    if len(path) < depth:
        return Area(path, areas, spots)
    return Area(path, (), (*(spot for area in areas for spot in area.all_spots()), *spots))


def _spot(node: Json) -> SceneNode:
    holders = tuple((str(one["owner"]), int(one["gpus"])) for one in node["holders"])
    return SceneNode(
        str(node["name"]), int(node["gpus"]["total"]), holders, bool(node["cordoned"]), bool(node["ready"])
    )
