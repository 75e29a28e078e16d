"""`coterie top --cluster`: what is in use on the nodes of a file or of a live cluster."""

from __future__ import annotations

from coterie.cli.handlers.remote.top import Look, print_usage
from coterie.cli.inputs.source import Source, notices_of, read_world, warn
from coterie.inspection.map import default_depth, scene_of
from coterie.rendering.usage import usage_of
from coterie.topology.domains import Domains


def run(source: Source, look: Look) -> None:
    """Print what is in use on the nodes of a call."""
    world = read_world(source)
    domains = Domains.of(world.cluster, world.topology)
    scene = scene_of(domains, default_depth(domains), pool=world.pool.name)
    print_usage(usage_of([(scene, {"backend": world.pool.backend})]), look)
    warn(notices_of(world))
