"""Small clusters and traces for the tests of simulations."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.placement.capacity import Capacity
from coterie.simulation.rule import Rule
from coterie.simulation.simulate import Result, simulate
from coterie.simulation.trace import Trace, TraceJob
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

ALL = ("coterie", "first-fit", "kueue")
TOPOLOGY = Topology.of(("spine", "spine"), ("rack", "rack"))


def fabric(*spines: Sequence[Sequence[int]]) -> Domains:
    """Build spines of racks of nodes, each given by its GPUs: `fabric([[8, 8], [4]])` is one spine of two racks."""
    nodes = [
        Node(f"s{spine}-r{rack}-n{node}", {"spine": f"s{spine}", "rack": f"r{rack}"}, {GPU: gpus})
        for spine, racks in enumerate(spines)
        for rack, sizes in enumerate(racks)
        for node, gpus in enumerate(sizes)
    ]
    return Domains.of(Cluster.of(nodes), TOPOLOGY)


def jobs(*rows: tuple[int, float, float]) -> Trace:
    """Build a trace from (GPUs, submission, duration)."""
    return Trace("plain", tuple(TraceJob(f"j{number}", *row) for number, row in enumerate(rows)))


def run(
    domains: Domains, trace: Trace, *, level: str | None = "rack", policies: Sequence[str] = ALL, window: int = 100
) -> Result:
    """Simulate a trace on an empty cluster."""
    return simulate(trace, Rule.of(domains, level), Capacity.now(domains), policies, window=window)
