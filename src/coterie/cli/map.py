"""`coterie map`: zones, racks, nodes, GPUs, and who holds them."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.cli.formats import Drawing
from coterie.cli.screen import screen, show, show_data
from coterie.cli.source import Source, notices_of, read_world, warn
from coterie.planning.mapping import default_depth, find_holder, level_depth, map_json, scene_of
from coterie.rendering.svg import map_svg
from coterie.rendering.terminal import map_lines
from coterie.rendering.text import visible
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class View:
    """What of the map is wanted."""

    level: str | None
    workload: str | None
    free: bool


def run(source: Source, view: View, output: Drawing) -> None:
    """Print the map of the nodes of a call."""
    world = read_world(source)
    domains = Domains.of(world.cluster, world.topology)
    depth = default_depth(domains) if view.level is None else level_depth(domains, view.level)
    highlight = None if view.workload is None else find_holder(world.cluster, view.workload)
    scene = scene_of(domains, depth, pool=world.pool.name, highlight=highlight)
    match output:
        case Drawing.JSON | Drawing.YAML:
            show_data(map_json(scene, world.topology, guessed=world.guessed), output.plain)
        case Drawing.SVG:
            show(map_svg(scene, free=view.free))
        case Drawing.NAME:
            show("/".join(map(visible, area.path)) for area in scene.at(depth) if area.path)
        case _:
            lines = map_lines(scene, screen(), free=view.free, fold=view.level is None, every=output is Drawing.WIDE)
            show(lines)
    warn(notices_of(world))
