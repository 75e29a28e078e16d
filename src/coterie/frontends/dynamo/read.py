"""The reading of a located object to a `GraphDeployment`, with every fault in its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coterie.document.located import Path
from coterie.document.schema import DocumentModel
from coterie.errors import Fault, FieldError, SpecErrors
from coterie.frontends.dynamo import manifest, shared_fields
from coterie.frontends.dynamo.ignored_fields import unused_fields
from coterie.frontends.dynamo.model import (
    ALPHA,
    Component,
    GraphConstraint,
    GraphDeployment,
    Override,
    TransferPolicy,
    Version,
)
from coterie.frontends.dynamo.pod_template import pod_template
from coterie.frontends.kubernetes.objects import Resource, shaped


def read_graph(resource: Resource) -> GraphDeployment:
    """Return a DynamoGraphDeployment of either version; raise `SpecErrors` with every fault in its shape."""
    try:
        if resource.api_version.endswith("/v1alpha1"):
            return _alpha(resource, shaped(manifest.AlphaGraph, resource, _advice))
        return _beta(resource, shaped(manifest.BetaGraph, resource, _advice))
    except SpecErrors as errors:
        raise SpecErrors([_forbidden(fault) for fault in errors.faults]) from None


def _beta(resource: Resource, graph: manifest.BetaGraph) -> GraphDeployment:
    raw = resource.get("spec", "components") or ()
    components = tuple(
        replace(
            _component(index, each.name, each),
            type=each.type or "",
            template=raw[index].get("podTemplate") or {},
            shared_memory="8Gi" if each.shared_memory_size is None else str(each.shared_memory_size),
        )
        for index, each in enumerate(graph.spec.components or ())
    )
    found = graph.spec.topology_constraint
    constraint = GraphConstraint(found.cluster_topology_name, found.pack_domain) if found else None
    return _graph(resource, "v1beta1", graph, components, constraint, resource.get("spec", "env") or ())


def _alpha(resource: Resource, graph: manifest.AlphaGraph) -> GraphDeployment:
    services = dict(sorted((graph.spec.services or {}).items()))
    origin: dict[Path, Path] = {
        ("spec", "components"): ("spec", "services"),
        ("spec", "env"): ("spec", "envs"),
        ("spec", "topologyConstraint", "clusterTopologyName"): ("spec", "topologyConstraint", "topologyProfile"),
    }
    components = []
    for index, (name, service) in enumerate(services.items()):
        here, there = ("spec", "components", index), ("spec", "services", name)
        template, parts = pod_template(resource.get(*there))
        origin[here] = origin[*here, "name"] = there
        origin[*here, "type"] = (*there, "componentType")
        origin.update({(*here, *part): (*there, *written) for part, written in parts.items()})
        role, part = service.component_type or "", service.sub_component_type or ""
        components.append(
            replace(
                _component(index, name, service),
                type=part if role == "worker" and part in ("prefill", "decode") else role,
                template=template,
                shared_memory=_shared_memory(service.shared_memory),
            )
        )
    found = graph.spec.topology_constraint
    constraint = GraphConstraint(found.topology_profile, found.pack_domain) if found else None
    read = _graph(resource, ALPHA, graph, tuple(components), constraint, resource.get("spec", "envs") or ())
    return replace(read, origin=origin)


def _component(index: int, name: str, shared: manifest.ComponentFields) -> Component:
    """Return the fields that both versions write alike."""
    multinode, path = shared.multinode, ("spec", "components", index)
    roles: dict[str, Override | None] = {}
    if multinode:
        for role, part in (("leader", multinode.leader), ("worker", multinode.worker)):
            found = part.provider_override if part else None
            roles[role] = _override(found, (*path, "multinode", role, "providerOverride"))
    for place, named in enumerate(shared.roles or ()):
        listed = _override(named.provider_override, (*path, "roles", place, "providerOverride"))
        roles[named.name] = listed or roles.get(named.name)
    grove = shared.experimental.grove if shared.experimental else None
    return Component(
        index=index,
        name=name,
        replicas=1 if shared.replicas is None else shared.replicas,
        min_available=shared.min_available,
        nodes=multinode.node_count if multinode else 1,
        force_group=bool(grove and grove.force_scaling_group),
        pack_domain=shared.topology_constraint.pack_domain if shared.topology_constraint else None,
        runtime_version=shared.runtime_version_override or "",
        override=_override(shared.provider_override, (*path, "providerOverride")),
        leader_override=roles.get("leader"),
        worker_override=roles.get("worker"),
    )


def _graph(
    resource: Resource,
    version: Version,
    graph: manifest.BetaGraph | manifest.AlphaGraph,
    components: tuple[Component, ...],
    constraint: GraphConstraint | None,
    env: Sequence[Mapping[str, Any]],
) -> GraphDeployment:
    spec = graph.spec
    return GraphDeployment(
        resource=resource,
        version=version,
        components=components,
        constraint=constraint,
        framework=spec.backend_framework or "",
        priority_class=spec.priority_class_name or "",
        labels=spec.labels or {},
        annotations=spec.annotations or {},
        own_annotations=graph.metadata.annotations or {},
        env=tuple(env),
        policy=_policy(spec.experimental.kv_transfer_policy if spec.experimental else None),
        override=_override(spec.provider_override, ("spec", "providerOverride")),
        generation=graph.metadata.generation,
        unused=tuple(unused_fields(resource, version)),
    )


def _policy(policy: shared_fields.TransferPolicyModel | None) -> TransferPolicy | None:
    if policy is None:
        return None
    return TransferPolicy(
        policy.domain, policy.cluster_topology_name, policy.label_key, policy.enforcement, policy.preferred_weight
    )


def _override(override: shared_fields.ProviderOverride | None, path: Path) -> Override | None:
    return Override(override.api_version, override.target, override.value, path) if override else None


def _shared_memory(memory: manifest.SharedMemory | None) -> str:
    if memory is None:
        return "8Gi"
    size = "0" if memory.size is None else str(memory.size)
    return "0" if memory.disabled else "8Gi" if not size.strip("0") else size


_RENAMED = {
    manifest.AlphaSpec: {"components": "services", "env": "envs"},
    manifest.BetaSpec: {"services": "components", "envs": "env"},
    manifest.AlphaConstraint: {"clusterTopologyName": "topologyProfile", "topologyName": "topologyProfile"},
    manifest.GraphConstraintModel: {"topologyProfile": "clusterTopologyName", "topologyName": "clusterTopologyName"},
    manifest.AlphaService: {"type": "componentType", "podTemplate": "extraPodSpec", "sharedMemorySize": "sharedMemory"},
    manifest.ComponentModel: {
        "componentType": "type",
        "subComponentType": "type",
        "sharedMemory": "sharedMemorySize",
        **dict.fromkeys(("resources", "envs", "envFromSecret", "volumeMounts", "extraPodSpec"), "podTemplate"),
        **dict.fromkeys(("labels", "annotations", "extraPodMetadata"), "podTemplate.metadata"),
        **dict.fromkeys(("livenessProbe", "readinessProbe"), "podTemplate"),
    },
}
_OF_GRAPH = ("topologyProfile", "clusterTopologyName", "topologyName")


def _advice(model: type[DocumentModel] | None, word: str) -> str:
    """Return the name that a field of the other version, or of Grove, has here."""
    if model is not None and (name := _RENAMED.get(model, {}).get(word)) is not None:
        verb = "belongs to" if name.startswith("podTemplate") else "is called"
        return f"In this version of the API it {verb} {name}."
    if model is shared_fields.ComponentConstraint and word in _OF_GRAPH:
        return "The topology is named once, in spec.topologyConstraint; all components use it."
    constraints = (manifest.AlphaConstraint, manifest.GraphConstraintModel, shared_fields.ComponentConstraint)
    if model in constraints and word == "enabled":
        return "There is no switch: a constraint holds where it is written. Remove the line."
    if model in constraints and word in ("pack", "required", "preferred"):
        return "Write packDomain, which is required. For a preference set topologyConstraint in a providerOverride."
    if word == "serviceOverrides":
        return "Each component has a topologyConstraint of its own."
    return ""


def _forbidden(fault: Fault) -> Fault:
    """Return a fault of type Forbidden for a topology name on a component: a known field in a wrong place."""
    if fault.path[-2:-1] == ("topologyConstraint",) and len(fault.path) > 3 and fault.path[-1] in _OF_GRAPH:
        message = f"{fault.path[-1]} is not allowed on a component"
        return replace(fault, message=message, type=FieldError.FORBIDDEN)
    return fault
