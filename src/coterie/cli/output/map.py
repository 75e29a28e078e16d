"""Printing a map, whoever says what stands where. Light: a map of a service needs no arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.screen import screen, show, show_data
from coterie.rendering.scene import MapScene
from coterie.rendering.svg import map_svg
from coterie.rendering.terminal import map_lines
from coterie.rendering.text import visible


@dataclass(frozen=True, slots=True)
class View:
    """What of the map is wanted."""

    level: str | None
    workload: str | None
    free: bool


def draw(scene: MapScene, view: View, output: Drawing, data: Callable[[], dict[str, Any]]) -> None:
    """Print a scene as it is wanted; `data` is asked for where that is JSON or YAML."""
    match output:
        case Drawing.JSON | Drawing.YAML:
            show_data(data(), output.plain)
        case Drawing.SVG:
            show(map_svg(scene, free=view.free))
        case Drawing.NAME:
            show("/".join(map(visible, area.path)) for area in scene.at(len(scene.levels)) if area.path)
        case _:
            every = output is Drawing.WIDE
            show(map_lines(scene, screen(), free=view.free, fold=view.level is None, every=every))
