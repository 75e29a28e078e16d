"""`coterie render` for PodCliqueSets and graph deployments: for KAI directly, or for Grove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from coterie.backends.grove.render import Source, render_grove
from coterie.backends.grove.render import render_notices as grove_notices
from coterie.backends.kai.manifests.render import RenderedManifests, RenderRequest
from coterie.backends.kai.sets.names import CompiledSet
from coterie.backends.kai.sets.render import render_set
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import Fault, Notice, SpecErrors, UsageError
from coterie.frontends.dynamo.lower import lower_graph
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.rules import admission as graph_rules
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.pod_shapes import placeable
from coterie.frontends.grove.podcliqueset.rules import admission as set_rules
from coterie.frontends.grove.topology import ClusterTopology
from coterie.planning.load import Documents, WrittenWorkload
from coterie.planning.pod_clique_sets import PreparedSet
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class RenderableSet:
    """A valid set, with the namespace for its objects."""

    written: WrittenWorkload
    prepared: PreparedSet
    namespace: str

    @property
    def gangs(self) -> tuple[str, ...]:
        """The names of its gangs."""
        return tuple(gang.name for gang in self.prepared.lowered.gangs)


def for_kai(
    ready: RenderableSet, cluster: Cluster | None, groups: Sequence[str], topologies: Mapping[str, ClusterTopology]
) -> RenderedManifests:
    """Render a set for KAI; faults and warnings point into the user's own file."""
    prepared = ready.prepared
    subject = CompiledSet(ready.written.name, prepared.pcs, prepared.lowered, prepared.pool, prepared.topology_name)
    blamed, noted = _ways_back(ready.written)
    try:
        rendered = render_set(subject, RenderRequest(ready.namespace, cluster, groups=groups, topologies=topologies))
    except SpecErrors as error:
        raise SpecErrors([blamed(fault) for fault in error.faults]) from None
    # Fields that do not affect a plan may be written into manifests; those that are not have their own warning.
    of_plans = {notice.message for notice in placeable(prepared.pcs).notices}
    before = [notice for notice in prepared.notices if notice.message not in of_plans]
    graphs = [ready.written.content] if isinstance(ready.written.content, GraphDeployment) else []
    return replace(rendered, notices=(*before, *grove_notices(graphs), *map(noted, rendered.notices)))


def for_grove(documents: Documents, known: Mapping[str, Topology], namespace: str | None) -> RenderedManifests:
    """Return the objects of a file in today's form of Grove's API; raise `SpecErrors` with every fault."""
    faults: list[Fault] = []
    notices: list[Notice] = []
    sources: list[Source] = [each.resource for each in documents.topologies.found.values()]
    for written in documents.workloads:
        content = written.content
        if isinstance(content, GraphDeployment):
            named = content.constraint.topology if content.constraint else None
            there = known if named is None or named in known else None
            faults += graph_rules.create_faults(content, there)
            notices += graph_rules.warnings(content, there)
            sources.append(content)
        elif isinstance(content, PodCliqueSet) and content.resource is not None:
            unknown = {each.topology for each in content.constraints()} - {"", *known}
            faults += set_rules.create_faults(content, None if unknown else known)
            notices += set_rules.warnings(content, None if unknown else known)
            sources.append(content.resource)
        else:
            raise UsageError(
                f'"{written.name}" is a workflow, and Grove runs PodCliqueSets',
                "Render it with --backend kai, or write it as a PodCliqueSet.",
            )
    if faults:
        raise SpecErrors(faults)
    manifests = render_grove(sources)
    if namespace is not None:
        manifests = [_within(manifest, namespace) for manifest in manifests]
    return RenderedManifests(tuple(manifests), (*notices, *grove_notices(sources)))


def _within(manifest: Manifest, namespace: str) -> Manifest:
    """Return an object in a namespace; topologies are in none."""
    if manifest["kind"] != "PodCliqueSet":
        return manifest
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {"name": metadata["name"], **metadata, "namespace": namespace}}


def _ways_back(written: WrittenWorkload) -> tuple[Callable[[Fault], Fault], Callable[[Notice], Notice]]:
    """Return functions that map faults and warnings about a set to its source document."""
    if not isinstance(written.content, GraphDeployment):
        return (lambda fault: fault), (lambda notice: notice)
    lowered = lower_graph(written.content)
    return lowered.blamed, lambda notice: lowered.noted(notice) if notice.path else notice


def own_namespace(written: WrittenWorkload) -> str:
    """Return the namespace that a document names, empty where it names none."""
    content = written.content
    resource = content.resource if isinstance(content, PodCliqueSet | GraphDeployment) else None
    return resource.namespace if resource else ""
