"""`coterie top --cluster`: the usage of the nodes in a file or a live cluster."""

from __future__ import annotations

from coterie.cli.commands.remote.top import TopOptions
from coterie.cli.handlers.remote.top import print_usage
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.source import notices_of, read_cluster_input, warn
from coterie.inspection.map import default_depth, scene_of
from coterie.rendering.usage import usage_of
from coterie.topology.domains import Domains


def run(options: TopOptions) -> None:
    """Print the usage of the nodes of a call."""
    source = ClusterOptions(options.cluster, options.config, options.pool, options.levels, options.topology)
    world = read_cluster_input(source)
    domains = Domains.of(world.cluster, world.topology)
    scene = scene_of(domains, default_depth(domains), pool=world.pool.name)
    print_usage(usage_of([(scene, {"backend": world.pool.backend})]), options)
    warn(notices_of(world))
