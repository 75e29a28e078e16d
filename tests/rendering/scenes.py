"""Small scenes for drawing tests."""

from __future__ import annotations

import re

from coterie.rendering.scene import Area, MapScene, SceneNode

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def spot(name: str, gpus: int = 8, *, out: str = "", by: dict[str, int] | None = None, **held: int) -> SceneNode:
    """Return a node; `out` is "cordoned" or "down", and `by` has holders whose names are no words of Python."""
    holders = tuple(sorted((held | (by or {})).items(), key=lambda pair: (-pair[1], pair[0])))
    return SceneNode(name, gpus, holders, cordoned=out == "cordoned", ready=out != "down")


def rack(path: str, *spots: SceneNode) -> Area:
    """Return a domain without finer ones, its path written with slashes."""
    return Area(tuple(path.split("/")), spots=spots)


def scene(*racks: Area, outside: tuple[SceneNode, ...] = (), highlight: str | None = None) -> MapScene:
    """Return racks in zones."""
    zones: dict[str, list[Area]] = {}
    for one in racks:
        zones.setdefault(one.path[0], []).append(one)
    areas = tuple(Area((zone,), tuple(group)) for zone, group in zones.items())
    return MapScene(("zone", "rack"), Area((), areas, outside), "default", highlight)


def fleet(zones: int, racks: int, nodes: int, gpus: int = 8) -> MapScene:
    """Return a scene with so many zones of so many racks of so many free nodes."""
    return scene(
        *(
            rack(f"z{zone}/r{number}", *(spot(f"z{zone}-r{number}-n{node}", gpus) for node in range(nodes)))
            for zone in range(zones)
            for number in range(racks)
        )
    )


USUAL = scene(
    rack("b1/r1", spot("n1", job=8), spot("n2", job=8), spot("n3", job=4), spot("n4")),
    rack("b1/r2", spot("n5", train=8), spot("n6", train=8)),
    rack("b2/r1", spot("n7", a=2, b=2), spot("n8", out="cordoned"), spot("n9", out="down", a=8)),
    outside=(spot("login", 0), spot("lost")),
)
