"""The printing of a map from any source; imports no arrays, which a map of a service does not need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import typer

from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.screen import screen, show, show_data
from coterie.inspection.page_files import PageFiles
from coterie.inspection.page_snapshot import snapshot_document
from coterie.rendering.scene import MapScene
from coterie.rendering.svg import map_svg
from coterie.rendering.terminal import map_lines
from coterie.rendering.text import visible

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """The requested part of the map."""

    level: str | None
    workload: str | None
    free: bool


@dataclass(frozen=True, slots=True)
class MapData:
    """The data of a map, computed where a format needs it: nested domains, and the snapshot of the web page."""

    nested: Callable[[], Json]
    snapshot: Callable[[], Json]


def draw(scene: MapScene, view: View, output: Drawing, data: MapData) -> None:
    """Print a scene in the requested format."""
    match output:
        case Drawing.JSON | Drawing.YAML:
            show_data(data.nested(), output.plain)
        case Drawing.SVG:
            show(map_svg(scene, free=view.free))
        case Drawing.HTML:
            typer.echo(snapshot_document(PageFiles.read(), data.snapshot()), nl=False)
        case Drawing.NAME:
            show("/".join(map(visible, area.path)) for area in scene.at(len(scene.levels)) if area.path)
        case _:
            every = output is Drawing.WIDE
            show(map_lines(scene, screen(), free=view.free, fold=view.level is None, every=every))


def snapshot_data(nodes: Json, source: str, workload: str | None, notices: Iterable[str]) -> Json:
    """Return the nodes of a pool as the web page shows them without a service."""
    return {
        "source": source,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "notices": list(notices),
        "query": urlencode({"workflow": workload}) if workload else "",
        "map": nodes,
    }
