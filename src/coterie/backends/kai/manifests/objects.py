"""The objects around the pods: queues, topology, PodGroup, ComputeDomain, Service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.backends.kai.manifests.metadata import BACKEND, MANAGED, ManifestContext
from coterie.backends.kai.pod_group import LevelConstraint, PodGroupPart, needed
from coterie.backends.shared.constraint_annotation import ANNOTATION, write
from coterie.backends.shared.manifest_text import Manifest
from coterie.config.configuration import GpuQuota
from coterie.frontends.grove.kai_topology import CLUSTER_TOPOLOGY, KAI_VERSION
from coterie.gang.tree import Gang

CLAIM = "compute-domain"
# KAI treats 100 and more as work that must not be preempted, and so keeps it within its guarantee.
_PRIORITIES = {"HIGH": 75, "NORMAL": 50, "LOW": 25}
_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def shared(scene: ManifestContext) -> Iterator[Manifest]:
    """Yield the objects that all workflows of a pool share: its queue, the parent queue, and its topology if any."""
    yield from queues(scene)
    if scene.pool.topology.levels:
        yield from topologies(scene)


def queues(scene: ManifestContext) -> Iterator[Manifest]:
    """Yield the parent queue of the pool's, then the pool's."""
    yield _queue(scene.parent_queue, scene.store_labels(), {}, _UNLIMITED)
    yield _queue(scene.queue, scene.pool_labels(), {"parentQueue": scene.parent_queue}, _gpus(scene.pool.gpus))


def topologies(scene: ManifestContext, owner: str = "") -> Iterator[Manifest]:
    """Yield the levels of the pool as KAI's Topology, unless that is managed externally.

    `owner` is the ClusterTopology that the object belongs to. Where it is known from a cluster, the object also has the
    owner reference by which Grove recognises it.
    """
    if scene.external_topology:
        return
    yield {
        "apiVersion": KAI_VERSION,
        "kind": "Topology",
        "metadata": {
            "name": scene.topology,
            "labels": scene.pool_labels(),
            **({"annotations": {CLUSTER_TOPOLOGY: owner}} if owner else {}),
            **({"ownerReferences": [reference]} if owner and (reference := _owner(scene)) else {}),
        },
        "spec": {"levels": [{"nodeLabel": level.label} for level in scene.pool.topology.levels]},
    }


def _owner(scene: ManifestContext) -> Manifest | None:
    declared = scene.declared
    uid = declared.resource.get("metadata", "uid") if declared else None
    if declared is None or not uid:
        return None
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": declared.kind,
        "name": declared.name,
        "uid": uid,
        "controller": True,
    }


def pod_group(scene: ManifestContext, gang: Gang, root: PodGroupPart) -> Manifest:
    """Return the PodGroup of a gang, with its tree in KAI's form and as the user defined it."""
    subgroups = [
        {
            "name": part.name,
            **({"parent": parent} if parent else {}),
            **({"minMember": needed(part)} if part.tasks else {}),
            **_constraint(scene, part.constraint),
        }
        for part, parent in root.walk()
        if part is not root
    ]
    metadata = scene.metadata(scene.gang(gang.name), gang.name)
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            **metadata,
            "labels": {**metadata["labels"], **scene.queue_labels()},
            "annotations": {ANNOTATION: write(gang, scene.pool.topology)},
        },
        "spec": {
            "queue": scene.queue,
            **({"priorityClassName": priority_class(scene.priority)} if scene.priority else {}),
            "minMember": needed(root),
            **_constraint(scene, root.constraint),
            **({"subGroups": subgroups} if subgroups else {}),
        },
    }


def priority_classes() -> Iterator[Manifest]:
    """Yield the PriorityClasses of PodGroups; all of them are low enough that KAI lets queues borrow and reclaim."""
    for priority, value in _PRIORITIES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": priority_class(priority), "labels": dict(MANAGED)},
            "value": value,
        }


def priority_class(priority: str) -> str:
    """Return the name of the PriorityClass of a workflow's priority."""
    return f"coterie-{priority.lower()}"


def compute_domain(scene: ManifestContext, group: str) -> Manifest:
    """Return the ComputeDomain of a group; its driver makes the claim template that the pods name."""
    return channel(scene.metadata(scene.gang(group), group), claim_template(scene, group))


def channel(metadata: Manifest, template: str) -> Manifest:
    """Return a ComputeDomain that grows with its pods, with the name of the claim template its driver makes."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": metadata,
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
    }


def claim_template(scene: ManifestContext, group: str) -> str:
    """Return the name of the claim template that a ComputeDomain's driver makes."""
    return f"{scene.gang(group)}-channel"


def service(scene: ManifestContext, group: str) -> Manifest:
    """Return the headless Service through which tasks find the hosts of a group, even before they are ready."""
    own = scene.labels(group)
    selector = {key: own[key] for key in own if key.startswith("coterie.dev/") and key != BACKEND}
    return headless(scene.metadata(scene.host_domain(group), group), selector)


def headless(metadata: Manifest, selector: Mapping[str, str], *, publish: bool = True) -> Manifest:
    """Return a Service that gives pods names; with `publish`, even before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": publish, "selector": dict(selector)},
    }


def _queue(name: str, labels: Mapping[str, str], parent: Manifest, gpu: Manifest) -> Manifest:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            **parent,
            "resources": {"cpu": dict(_UNLIMITED), "gpu": dict(gpu), "memory": dict(_UNLIMITED)},
        },
    }


def _gpus(quota: GpuQuota) -> Manifest:
    if quota == GpuQuota():
        return dict(_UNLIMITED)
    return {
        "quota": quota.guarantee or 0,
        "limit": -1 if quota.limit is None else quota.limit,
        "overQuotaWeight": quota.weight,
    }


def _constraint(scene: ManifestContext, constraint: LevelConstraint) -> Manifest:
    """Return the field of a constraint; levels come with their topology, since KAI would ignore them otherwise."""
    if not constraint:
        return {}
    levels = scene.pool.topology
    found: Manifest = {"topology": scene.topology}
    if constraint.required is not None:
        found["requiredTopologyLevel"] = levels.label(constraint.required)
    if constraint.preferred is not None:
        found["preferredTopologyLevel"] = levels.label(constraint.preferred)
    return {"topologyConstraint": found}
