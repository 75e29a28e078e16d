"""`coterie map`: zones, racks, nodes, GPUs, and their holders."""

from __future__ import annotations

import shlex

from coterie.cli.commands.remote.pool import PoolMapOptions
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.parameters import command_words
from coterie.cli.inputs.service_options import ServiceOptions
from coterie.cli.inputs.source import notices_of, read_cluster_input, say_service, warn
from coterie.cli.output.drawing_formats import Drawing
from coterie.cli.output.map import View, draw
from coterie.inspection.map import default_depth, find_holder, level_depth, map_json, scene_of
from coterie.topology.domains import Domains


def run(source: ClusterOptions, view: View, output: Drawing) -> None:
    """Print the map of the nodes of a call."""
    world = read_cluster_input(source)
    domains = Domains.of(world.cluster, world.topology)
    depth = default_depth(domains) if view.level is None else level_depth(domains, view.level)
    highlight = None if view.workload is None else find_holder(world.cluster, view.workload)
    scene = scene_of(domains, depth, pool=world.pool.name, highlight=highlight)
    draw(scene, view, output, lambda: map_json(scene, world.topology, guessed=world.pool.guessed))
    warn(notices_of(world))
    map_of_service = PoolMapOptions(name=world.pool.name, service=ServiceOptions())
    say_service(source, world.pool, shlex.join(command_words("pool map", map_of_service)))
