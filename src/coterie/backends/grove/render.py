"""Manifests for Grove: the PodCliqueSet of a graph deployment, and older objects of Grove in today's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coterie.backends.grove.upgrade import binding_of, upgraded
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import Notice, UsageError
from coterie.frontends.dynamo.lower import lower_graph
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.topology import read_cluster_topology
from coterie.frontends.kubernetes.objects import Resource

Source = GraphDeployment | Resource


def render_grove(sources: Iterable[Source]) -> list[Manifest]:
    """Return the manifests of graph deployments, PodCliqueSets and ClusterTopologies, topologies first.

    Raises `SpecErrors` for a graph deployment that no PodCliqueSet can express, and for objects of a wrong shape.
    """
    found = [_manifest(source) for source in sources]
    return sorted(found, key=lambda manifest: manifest["kind"] != "ClusterTopologyBinding")


def render_notices(sources: Iterable[Source]) -> list[Notice]:
    """Return the notices to read before the manifests are applied."""
    return [notice for source in sources for notice in _notices(source)]


def _manifest(source: Source) -> Manifest:
    if isinstance(source, GraphDeployment):
        return lower_graph(source).manifest
    if source.kind == "PodCliqueSet":
        read_podcliqueset(source)
        return upgraded(source.data)
    if source.kind in ("ClusterTopology", "ClusterTopologyBinding"):
        read_cluster_topology(source)
        return binding_of(source.data)
    raise UsageError(f"{source} cannot be rendered for Grove", "Give it a graph deployment or a PodCliqueSet.")


def _notices(source: Source) -> Iterator[Notice]:
    if isinstance(source, GraphDeployment):
        spanning = [component for component in source.components if component.nodes > 1 and component.replicas]
        if spanning:
            message = (
                "Dynamo's operator adds arguments to engines that span nodes; here their commands stay as written, "
                "and find the leader in COTERIE_LEADER_HOST and their rank in COTERIE_NODE_RANK_BASE plus "
                "GROVE_PCLQ_POD_INDEX"
            )
            yield source.notice("EngineArguments", message, (*spanning[0].path, "multinode"))
