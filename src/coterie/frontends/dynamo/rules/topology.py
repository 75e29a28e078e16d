"""The topology rules of graph deployments: dependencies between fields, and agreement with the ClusterTopology.

The topology is named once, for the whole graph. A component's level is that of the graph or a narrower one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.errors import Fault, FieldError, Reason, Unavailable, did_you_mean
from coterie.frontends.dynamo.model import Component, GraphDeployment
from coterie.frontends.dynamo.settings import DynamoSettings
from coterie.frontends.kubernetes.objects import is_subdomain
from coterie.topology.levels import Topology

CONSTRAINT: Path = ("spec", "topologyConstraint")
POLICY: Path = ("spec", "experimental", "kvTransferPolicy")
_NAME: Path = (*CONSTRAINT, "clusterTopologyName")


def needs_topologies(graph: GraphDeployment) -> bool:
    """Return whether anything in the graph names a topology."""
    return graph.constraint is not None or (graph.policy is not None and graph.policy.topology is not None)


def shape_faults(graph: GraphDeployment, settings: DynamoSettings) -> Iterator[Fault]:
    """Yield the faults that do not depend on the existing topologies."""
    packed = [component for component in graph.components if component.pack_domain is not None]
    if graph.constraint is None and packed:
        first = packed[0]
        message = f'"{first.name}" has a topologyConstraint, but the graph does not say which topology it means'
        hint = f"Add spec.topologyConstraint.{_word(graph)} with the name of a ClusterTopology."
        yield graph.fault(FieldError.REQUIRED, CONSTRAINT, message, hint, at=(*first.path, "topologyConstraint"))
    if graph.constraint is not None and graph.constraint.pack_domain is None and not packed:
        message = "the topologyConstraint names a topology, but nothing is packed within any of its levels"
        hint = "Add packDomain here, or a topologyConstraint to a component."
        yield graph.fault(FieldError.REQUIRED, (*CONSTRAINT, "packDomain"), message, hint)
    yield from _policy_shape(graph, settings)


def _word(graph: GraphDeployment) -> str:
    return str(graph.written(_NAME)[-1])


def _policy_shape(graph: GraphDeployment, settings: DynamoSettings) -> Iterator[Fault]:
    policy = graph.policy
    if policy is None:
        return
    if (policy.label is None) == (policy.topology is None):
        message = "kvTransferPolicy needs exactly one of labelKey and clusterTopologyName"
        yield graph.fault(FieldError.INVALID, POLICY, message, "Keep one of the two.")
    if (policy.enforcement == "preferred") != (policy.weight is not None):
        message = "preferredWeight belongs to enforcement: preferred, and only to it"
        yield graph.fault(FieldError.INVALID, POLICY, message, "Write both, or neither.")
    if policy.topology is not None:
        path = (*POLICY, "clusterTopologyName")
        if not is_subdomain(policy.topology):
            message = f'"{policy.topology}" cannot be the name of a ClusterTopology'
            yield graph.fault(FieldError.INVALID, path, message, 'Lower-case letters, digits, "-" and "." are allowed.')
        elif not graph.on_grove(settings):
            yield graph.fault(FieldError.FORBIDDEN, path, "clusterTopologyName needs Grove", "Use labelKey.")


def live_faults(
    graph: GraphDeployment, topologies: Mapping[str, Topology] | None, settings: DynamoSettings
) -> Iterator[Fault]:
    """Yield the faults that depend on the existing topologies."""
    if topologies is None or not graph.on_grove(settings):
        return
    if graph.constraint is not None:
        topology = _topology(graph, _NAME, graph.constraint.topology, topologies)
        yield from [topology] if isinstance(topology, Fault) else _levels(graph, topology)
    if graph.policy is not None and graph.policy.topology is not None and is_subdomain(graph.policy.topology):
        topology = _topology(graph, (*POLICY, "clusterTopologyName"), graph.policy.topology, topologies)
        if isinstance(topology, Fault):
            yield topology
        elif graph.policy.domain not in topology.names:
            yield _unknown(graph, (*POLICY, "domain"), graph.policy.domain, topology, graph.policy.topology)


def _topology(graph: GraphDeployment, path: Path, name: str, topologies: Mapping[str, Topology]) -> Topology | Fault:
    """Return a topology by its name, or the fault of one that does not exist or cannot be read now."""
    try:
        found = topologies.get(name)
    except Unavailable as error:
        message = f'the ClusterTopology "{name}" cannot be read: {error}'
        return graph.fault(FieldError.INTERNAL, path, message, "Try again later.")
    return _missing(graph, path, name, topologies) if found is None else found


def _levels(graph: GraphDeployment, topology: Topology) -> Iterator[Fault]:
    constraint = graph.constraint
    if constraint is None:
        return
    whole = constraint.pack_domain
    if whole is not None and whole not in topology.names:
        yield _unknown(graph, (*CONSTRAINT, "packDomain"), whole, topology, constraint.topology)
        whole = None
    for component in graph.components:
        level = component.pack_domain
        if level is None:
            continue
        path = (*component.path, "topologyConstraint", "packDomain")
        if level not in topology.names:
            yield _unknown(graph, path, level, topology, constraint.topology)
        elif whole is not None and topology.index(level) < topology.index(whole):
            yield _broader(graph, path, component, whole, topology)


def _broader(graph: GraphDeployment, path: Path, component: Component, whole: str, topology: Topology) -> Fault:
    allowed = topology.names[topology.index(whole) :]
    message = f'"{component.name}" is packed within one {component.pack_domain}, which is broader than the {whole}'
    hint = f"Use the same level or a narrower one: {', '.join(allowed)}."
    return graph.fault(FieldError.INVALID, path, f"{message} that the whole graph shares", hint)


def _missing(graph: GraphDeployment, path: Path, name: str, topologies: Mapping[str, Topology]) -> Fault:
    listed = f"Known are: {', '.join(sorted(topologies))}." if topologies else "None are known."
    hint = f"{listed} {did_you_mean(name, topologies)}".strip()
    return graph.fault(FieldError.INVALID, path, f'there is no ClusterTopology "{name}"', hint)


def _unknown(graph: GraphDeployment, path: Path, level: str, topology: Topology, name: str) -> Fault:
    hint = f"Its levels are: {', '.join(topology.names)}. {did_you_mean(level, topology.names)}".strip()
    message = f'ClusterTopology "{name}" has no level "{level}"'
    return graph.fault(FieldError.INVALID, path, message, hint, code=Reason.UNKNOWN_LEVEL)
