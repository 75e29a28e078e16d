"""The map with a workflow's GPUs after it has released them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.rendering.scene import Area, MapScene, SceneNode, ranked

Json = dict[str, Any]


def where_it_ran(scene: MapScene, placement: Json) -> MapScene:
    """Return the scene with the GPUs of a placement's tasks, whether or not they still hold them.

    Groups that ran in sequence may have had the same GPUs; each counts once.
    """
    devices: dict[str, set[int]] = {}
    for group in placement["groups"]:
        for task in group["tasks"]:
            devices.setdefault(task["node"], set()).update(task["gpus"])
    had = {node: len(found) for node, found in devices.items() if found}
    return replace(scene, root=_area(scene.root, placement["id"], had))


def _area(area: Area, owner: str, had: Mapping[str, int]) -> Area:
    return Area(
        area.path,
        tuple(_area(below, owner, had) for below in area.areas),
        tuple(_spot(spot, owner, had.get(spot.name, 0)) for spot in area.spots),
    )


def _spot(spot: SceneNode, owner: str, gpus: int) -> SceneNode:
    if not gpus:
        return spot
    holders = ranked(Counter({**dict(spot.holders), owner: gpus}))
    return replace(spot, holders=holders)
