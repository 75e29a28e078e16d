"""The printing of a map from any source; imports no arrays, which a map of a service does not need."""

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
    """The requested part of the map."""

    level: str | None
    workload: str | None
    free: bool


def draw(scene: MapScene, view: View, output: Drawing, data: Callable[[], dict[str, Any]]) -> None:
    """Print a scene in the requested format; `data` is called for JSON or YAML."""
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
