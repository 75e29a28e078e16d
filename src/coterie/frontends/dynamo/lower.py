"""The PodCliqueSet that Grove runs for a graph deployment, in today's form of its API, with source paths.

A single-node component becomes a clique. A multi-node one becomes a scaling group of a leader clique and a worker
clique, and its constraint applies to the group, so that each replica is packed on its own. Constraints of Dynamo's own
fields are required ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coterie.document.located import Path
from coterie.errors import Fault, Notice, SpecErrors, field_path
from coterie.frontends.dynamo.model import Component, GraphDeployment, Override
from coterie.frontends.dynamo.names import clique_names, fitted, set_name, unit_name
from coterie.frontends.dynamo.pods import PodGenerator
from coterie.frontends.dynamo.rules.admission import planning_faults
from coterie.frontends.dynamo.rules.overrides import API_VERSION, SET, constraint_of
from coterie.frontends.dynamo.settings import DEFAULTS, DynamoSettings
from coterie.frontends.dynamo.source_paths import Origin, follow
from coterie.frontends.kubernetes.objects import Resource, resource_of

GRAPH_LABEL = "nvidia.com/dynamo-graph-deployment-name"
_CONSTRAINT = "topologyConstraint"
_TEMPLATE: Path = ("spec", "template")

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """The PodCliqueSet of a graph; `origin` maps its paths to today's form of the graph.

    `added` are fields of the set without a source in the graph.
    """

    graph: GraphDeployment
    manifest: Manifest
    origin: Origin = field(repr=False)
    added: frozenset[Path] = frozenset()

    @property
    def resource(self) -> Resource:
        """The set as an object of the user's file; raises `SpecErrors` for an invalid one."""
        return replace(resource_of(self.manifest, self.graph.resource.document.page.file), added=self.added)

    def written(self, path: Path) -> Path:
        """Return the source in the user's file of a part of the PodCliqueSet."""
        return self.graph.written(follow(self.origin, path))

    def blamed(self, fault: Fault) -> Fault:
        """Return a fault of the PodCliqueSet at its source in the user's file; the field stays Grove's."""
        path = self.written(fault.path)
        place = self.graph.resource.document.place(path)
        return replace(fault, path=path, place=place, field=fault.field or field_path(fault.path))

    def noted(self, notice: Notice) -> Notice:
        """Return a warning about the PodCliqueSet at its source in the user's file."""
        path = self.written(notice.path)
        return replace(notice, path=path, place=self.graph.resource.document.place(path))


def lower_graph(graph: GraphDeployment, settings: DynamoSettings = DEFAULTS) -> LoweredGraph:
    """Return the PodCliqueSet of a graph with source paths; raise `SpecErrors` where a set cannot express the graph.

    Components without replicas are left out: Grove has no clique of zero pods.
    """
    if faults := planning_faults(graph, settings):
        raise SpecErrors(faults)
    return _Builder(graph, settings).built()


class _Builder:
    """The manifest under construction, and the source paths in today's form of the graph."""

    def __init__(self, graph: GraphDeployment, settings: DynamoSettings) -> None:
        self.graph = graph
        self.settings = settings
        self.pods = PodGenerator(graph, settings)
        self.cliques: list[Manifest] = []
        self.groups: list[Manifest] = []
        self.ways: dict[Path, Path] = {(): (), ("spec",): ("spec",), _TEMPLATE: ("spec",)}
        self.added = {(*_TEMPLATE, name) for name in ("cliqueStartupType", "headlessServiceConfig", "terminationDelay")}

    def built(self) -> LoweredGraph:
        graph = self.graph
        for component in graph.components:
            if component.replicas:
                self._component(component)
        explicit = graph.framework == "trtllm" and any(each.nodes > 1 for each in graph.components if each.replicas)
        template = {
            "cliqueStartupType": f"CliqueStartupType{'Explicit' if explicit else 'AnyOrder'}",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
            **({"priorityClassName": graph.priority_class} if graph.priority_class else {}),
            **self._whole(),
            "cliques": self.cliques,
            **({"podCliqueScalingGroups": self.groups} if self.groups else {}),
        }
        metadata = {
            "name": set_name(graph.name, graph.components),
            **({"namespace": graph.namespace} if graph.namespace else {}),
            "labels": {**graph.labels, GRAPH_LABEL: fitted(graph.name, 63)},
            **({"annotations": dict(graph.annotations)} if graph.annotations else {}),
        }
        manifest = {
            "apiVersion": API_VERSION,
            "kind": SET,
            "metadata": metadata,
            "spec": {"replicas": 1, "template": template},
        }
        self.ways["metadata", "labels"] = ("spec", "labels")
        self.ways["metadata", "annotations"] = ("spec", "annotations")
        return LoweredGraph(graph, manifest, self.ways, frozenset(self.added))

    def _whole(self) -> Manifest:
        """Return the constraint on the set."""
        here = (*_TEMPLATE, _CONSTRAINT)
        if (found := constraint_of(self.graph.override, of_set=True)) is not None:
            return self._piece(found, here)
        constraint = self.graph.constraint
        if constraint is None or constraint.pack_domain is None:
            return {}
        return self._required(here, ("spec", _CONSTRAINT), constraint.pack_domain, constraint.topology)

    def _part(self, component: Component, override: Override | None, here: Path) -> Manifest:
        """Return the constraint on a component's clique or group; it names the topology where the set does not."""
        if (found := constraint_of(override)) is not None:
            return self._piece(found, (*here, _CONSTRAINT))
        if component.pack_domain is None or override is not component.override:
            return {}
        whole = self.graph.constraint
        name = whole.topology if whole is not None and whole.pack_domain is None else None
        return self._required((*here, _CONSTRAINT), (*component.path, _CONSTRAINT), component.pack_domain, name)

    def _required(self, here: Path, there: Path, level: str, topology: str | None) -> Manifest:
        self.ways[here] = there
        self.ways[*here, "topologyName"] = ("spec", _CONSTRAINT, "clusterTopologyName")
        for step in (("pack",), ("pack", "required")):
            self.ways[*here, *step] = (*there, "packDomain")
        return {_CONSTRAINT: {**({"topologyName": topology} if topology else {}), "pack": {"required": level}}}

    def _piece(self, found: tuple[Mapping[str, object], Path], here: Path) -> Manifest:
        value, there = found
        self.ways[here] = there
        return {_CONSTRAINT: copy.deepcopy(dict(value))}

    def _component(self, component: Component) -> None:
        names = clique_names(component)
        if not component.grouped:
            self._clique(component, names[0], component.replicas, component.least, component.override)
            return
        here = (*_TEMPLATE, "podCliqueScalingGroups", len(self.groups))
        self.ways[here] = component.path
        self.ways[*here, "cliqueNames"] = (*component.path, "name")
        self.groups.append(
            {
                "name": unit_name(component),
                "cliqueNames": list(names),
                "replicas": component.replicas,
                "minAvailable": component.least,
                **self._part(component, component.override, here),
            }
        )
        if component.nodes == 1:
            self._clique(component, names[0], 1, 1, None)
            return
        leader, worker = names
        after = [worker] if self.graph.framework == "trtllm" else []
        self._clique(component, leader, 1, 1, component.leader_override, after)
        workers = component.nodes - 1
        self._clique(component, worker, workers, workers, component.worker_override)

    def _clique(
        self,
        component: Component,
        name: str,
        replicas: int,
        least: int,
        override: Override | None,
        after: list[str] | None = None,
    ) -> None:
        here = (*_TEMPLATE, "cliques", len(self.cliques))
        self.ways.update(dict(self._clique_ways(component, here)))
        self.added.add((*here, "spec", "startsAfter"))
        single = not component.grouped
        constraint = self._part(component, override, here) if single or override is not None else {}
        self.cliques.append(
            {
                "name": name,
                **self.pods.metadata(component),
                **constraint,
                "spec": {
                    "roleName": name,
                    "replicas": replicas,
                    "minAvailable": least,
                    **({"startsAfter": after} if after else {}),
                    "podSpec": self.pods.spec(component, name),
                },
            }
        )

    def _clique_ways(self, component: Component, here: Path) -> Iterator[tuple[Path, Path]]:
        there = component.path
        yield here, there
        yield (*here, "spec"), there
        yield (*here, "spec", "roleName"), (*there, "name")
        yield (*here, "spec", "podSpec"), (*there, "podTemplate", "spec")
        for name in ("labels", "annotations"):
            yield (*here, name), (*there, "podTemplate", "metadata", name)
        if component.nodes > 1:
            yield (*here, "spec", "replicas"), (*there, "multinode", "nodeCount")
            yield (*here, "spec", "minAvailable"), (*there, "multinode", "nodeCount")
