"""The availability of the levels that a PodCliqueSet names, as the condition `TopologyLevelsUnavailable`.

It concerns a running set: its topology, or a level of it, may have been removed since the set was admitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coterie.frontends.grove.conditions import GroveCondition
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet, TopologyConstraint
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.topology.levels import Topology


def levels_unavailable(
    pcs: PodCliqueSet, topologies: Mapping[str, Topology], settings: GroveSettings | None = None
) -> GroveCondition | None:
    """Return the condition of a set; None where topology-aware scheduling is off and the set has no constraint.

    For a missing ClusterTopology the status is True, as proposed. Today's Grove reports Unknown, and so does this
    function for settings with today's API.
    """
    # The order in which Grove looks for the name of the topology.
    below = (*(group.constraint for group in pcs.groups), *(clique.constraint for clique in pcs.cliques))
    written = [each for each in (pcs.constraint, *below) if each is not None]
    return constraints_unavailable(written, topologies, settings or GroveSettings())


def constraints_unavailable(
    written: Sequence[TopologyConstraint], topologies: Mapping[str, Topology], settings: GroveSettings
) -> GroveCondition | None:
    """Return the condition of an object with these constraints, as `levels_unavailable` does for a set."""
    if not settings.topology_aware_scheduling:
        message = "topology-aware scheduling is off, so the constraints have no effect"
        return GroveCondition("Unknown", "TopologyAwareSchedulingDisabled", message) if written else None
    if not written:
        return GroveCondition("False", "AllClusterTopologyLevelsAvailable", "there is no topology constraint")
    name = next((each.topology for each in written if each.topology), "")
    if not name:
        message = "there are topology constraints, and none names a ClusterTopology"
        return GroveCondition("Unknown", "TopologyNameMissing", message)
    topology = topologies.get(name)
    if topology is None:
        message = f'there is no ClusterTopology "{name}", which the constraints name'
        return GroveCondition("Unknown" if settings.strict else "True", "ClusterTopologyNotFound", message)
    domains = dict.fromkeys(domain for each in written for domain in (each.domain, each.preferred) if domain)
    if lost := [domain for domain in domains if domain not in topology.names]:
        listed = ", ".join(f'"{domain}"' for domain in lost)
        message = f'the ClusterTopology "{name}" has no level {listed}, which the constraints name'
        return GroveCondition("True", "ClusterTopologyLevelsUnavailable", message)
    message = f'the ClusterTopology "{name}" has every level that the constraints name'
    return GroveCondition("False", "AllClusterTopologyLevelsAvailable", message)
