"""`coterie map`: zones, racks, nodes, GPUs, and their holders."""

from __future__ import annotations

import shlex
from typing import Any

from coterie.cli.commands.remote.pool import PoolMapOptions
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.parameters import command_words
from coterie.cli.inputs.service_options import ServiceOptions
from coterie.cli.inputs.source import notices_of, read_cluster_input, say_service, source_title, warn
from coterie.cli.output.browser import browse
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.map import MapData, View, draw, snapshot_data
from coterie.errors import UsageError
from coterie.inspection.map import default_depth, find_holder, level_depth, map_json, scene_of
from coterie.inspection.node_map import node_map
from coterie.inspection.page_files import PageFiles
from coterie.inspection.page_snapshot import snapshot_document
from coterie.topology.domains import Domains


def run(source: ClusterOptions, view: View, output: Drawing, *, web: bool = False) -> None:
    """Print the map of the nodes of a call, or show it in a browser."""
    if web and output is not Drawing.TABLE:
        hint = f"Remove one of the two; `-o {Drawing.HTML}` writes what --web shows."
        raise UsageError("--web prints no map, so it cannot be used with --output", hint)
    world = read_cluster_input(source)
    domains = Domains.of(world.cluster, world.topology)
    depth = default_depth(domains) if view.level is None else level_depth(domains, view.level)
    highlight = None if view.workload is None else find_holder(world.cluster, view.workload)
    scene = scene_of(domains, depth, pool=world.pool.name, highlight=highlight)
    notices = notices_of(world)

    def snapshot() -> dict[str, Any]:
        nodes = node_map(domains, depth, pool=world.pool.name).json()
        return snapshot_data(
            nodes, source_title(source, world.config), highlight, (notice.message for notice in notices)
        )

    if web:
        document = snapshot_document(PageFiles.read(), snapshot())
        warn(notices)
        browse(document)
        return
    draw(scene, view, output, MapData(lambda: map_json(scene, world.topology, guessed=world.pool.guessed), snapshot))
    warn(notices)
    map_of_service = PoolMapOptions(name=world.pool.name, service=ServiceOptions())
    say_service(source, world.pool, shlex.join(command_words("pool map", map_of_service)))
