"""The fields of Kubernetes' nodes and pods that placement needs, and their conversion to Coterie's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from coterie.sources import GangPod
from coterie.sources.assemble import member_of
from coterie.sources.claims import PodClaim, claims_channel
from coterie.sources.pod_affinity import Affinity, Port, traits_of
from coterie.sources.task_labels import ATTEMPT, WORKFLOW
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import PODS, Member, Node, Pod, Taint
from coterie.topology.devices import NO_TEMPLATES, ClaimTemplates
from coterie.topology.pod_affinity import PodTraits
from coterie.topology.pod_requests import asked, pod_requests
from coterie.topology.quantity import amount

_CORDON = "node.kubernetes.io/unschedulable"
_FINISHED = frozenset({"Succeeded", "Failed"})
_KAI_GROUP = "scheduling.run.ai/"
_NO_LABELS: Mapping[str, str] = {}
_SUBGROUP = "kai.scheduler/subgroup-name"
# The labels of pods that Grove created: set, gang, clique and index in the clique.
_PART_OF, _GANG = "app.kubernetes.io/part-of", "grove.io/podgang"
_CLIQUE, _INDEX = "grove.io/podclique", "grove.io/podclique-pod-index"

Quantities = dict[str, str | int | float]
Amounts = dict[str, int]


class NodeMeta(msgspec.Struct, gc=False):
    """Name and labels of a node, and whether it is being deleted."""

    name: str
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = msgspec.field(default=None, name="deletionTimestamp")


class TaintItem(msgspec.Struct, gc=False):
    """A taint as the API writes it."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(msgspec.Struct, gc=False):
    """The fields of a node's spec that an admin may set."""

    unschedulable: bool | None = None
    taints: list[TaintItem] | None = None


class NodeCondition(msgspec.Struct, gc=False):
    """One condition of a node."""

    type: str
    status: str


class NodeStatus(msgspec.Struct, gc=False):
    """The resources of a node; its capacity stays undecoded, since it is needed only where allocatable is absent."""

    allocatable: Quantities | None = None
    capacity: msgspec.Raw = msgspec.Raw()
    conditions: list[NodeCondition] | None = None


class BareNode(msgspec.Struct, gc=False):
    """A node; its list states the kind."""

    metadata: NodeMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class PodAnnotations(msgspec.Struct, gc=False):
    """The annotations that identify static pods and the PodGroup of KAI's pods."""

    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")
    pod_group: str | None = msgspec.field(default=None, name="pod-group-name")


class OwnerReference(msgspec.Struct, gc=False):
    """The owner of a pod."""

    kind: str
    name: str
    controller: bool | None = None


class PodMeta(msgspec.Struct, gc=False, rename="camel"):
    """The identity, labels and owners of a pod."""

    name: str
    namespace: str = "default"
    labels: dict[str, str] | None = None
    annotations: PodAnnotations | None = None
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class SnapshotResources(msgspec.Struct, gc=False):
    """The requests and limits of a container, or of a pod as a whole."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class SnapshotContainer(msgspec.Struct, gc=False, rename="camel"):
    """A container; an init container that always restarts is a sidecar."""

    resources: SnapshotResources | None = None
    restart_policy: str | None = None
    ports: list[Port] | None = None


class SnapshotPodSpec(msgspec.Struct, gc=False, rename="camel"):
    """The node of a pod and its requests."""

    node_name: str | None = None
    containers: list[SnapshotContainer] | None = None
    init_containers: list[SnapshotContainer] | None = None
    overhead: Quantities | None = None
    resources: SnapshotResources | None = None
    resource_claims: list[PodClaim] | None = None
    affinity: Affinity | None = None


class PodStatus(msgspec.Struct, gc=False):
    """The phase of a pod."""

    phase: str | None = None


class BarePod(msgspec.Struct, gc=False):
    """A pod; its list states the kind."""

    metadata: PodMeta
    spec: SnapshotPodSpec | None = None
    status: PodStatus | None = None


class NodeItem(BareNode, gc=False, tag_field="kind", tag="Node"):
    """A node with its kind."""


class PodItem(BarePod, gc=False, tag_field="kind", tag="Pod"):
    """A pod with its kind."""


class BareTopology(msgspec.Struct, gc=False, rename="camel"):
    """An object that declares levels, not yet validated: that is left to the reader of its kind."""

    api_version: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()
    spec: msgspec.Raw = msgspec.Raw()


class ClusterTopologyItem(BareTopology, gc=False, tag_field="kind", tag="ClusterTopology"):
    """A ClusterTopology with its kind."""


class ClusterTopologyBindingItem(BareTopology, gc=False, tag_field="kind", tag="ClusterTopologyBinding"):
    """A ClusterTopology under the later name of its kind."""


class TopologyItem(BareTopology, gc=False, tag_field="kind", tag="Topology"):
    """A Topology with its kind; several schedulers use this kind."""


class BarePodGroup(msgspec.Struct, gc=False, rename="camel"):
    """A PodGroup; several schedulers use this kind, and KAI's are validated by the code that reads them."""

    api_version: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()
    spec: msgspec.Raw = msgspec.Raw()


class BareDevices(msgspec.Struct, gc=False, rename="camel"):
    """An object that defines claim templates; it is validated by the code that reads its kind."""

    api_version: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()
    spec: msgspec.Raw = msgspec.Raw()


class ComputeDomainItem(BareDevices, gc=False, tag_field="kind", tag="ComputeDomain"):
    """A ComputeDomain, which creates a template of claims to its channels."""


class ClaimTemplateItem(BareDevices, gc=False, tag_field="kind", tag="ResourceClaimTemplate"):
    """A ResourceClaimTemplate with its kind."""


class PodGroupItem(BarePodGroup, gc=False, tag_field="kind", tag="PodGroup"):
    """A PodGroup with its kind."""


TOPOLOGIES: Mapping[str, type[BareTopology]] = {
    "ClusterTopology": ClusterTopologyItem,
    "ClusterTopologyBinding": ClusterTopologyBindingItem,
    "Topology": TopologyItem,
}


DEVICES: Mapping[str, type[BareDevices]] = {
    "ComputeDomain": ComputeDomainItem,
    "ResourceClaimTemplate": ClaimTemplateItem,
}


def device_object(item: BareDevices) -> dict[str, Any]:
    """Return an object that defines claim templates as plain data."""
    kind = next(kind for kind, found in DEVICES.items() if isinstance(item, found))
    return {"kind": kind, **_plain(item)}


def topology_object(item: BareTopology) -> dict[str, Any]:
    """Return an object that declares levels as plain data; invalid UTF-8 becomes replacement characters."""
    kind = next(kind for kind, found in TOPOLOGIES.items() if isinstance(item, found))
    return {"kind": kind, **_plain(item)}


def pod_group_object(item: BarePodGroup) -> dict[str, Any] | None:
    """Return a PodGroup of KAI as plain data, None for one of another scheduler."""
    found = {"kind": "PodGroup", **_plain(item)}
    return found if str(found.get("apiVersion")).startswith(_KAI_GROUP) else None


def gang_pod_of(item: BarePod) -> GangPod | None:
    """Return a pod that names a PodGroup, finished or not; None for any other pod."""
    meta, spec, labels = item.metadata, item.spec, item.metadata.labels or {}
    if meta.annotations is None or not meta.annotations.pod_group:
        return None
    return GangPod(
        namespace=meta.namespace,
        name=meta.name,
        pod_group=meta.annotations.pod_group,
        subgroup=labels.get(_SUBGROUP, ""),
        member=_member(labels),
        attempt=labels.get(ATTEMPT, ""),
        node=(spec.node_name if spec else None) or "",
        phase=(item.status.phase if item.status else None) or "",
        terminating=meta.deletion_timestamp is not None,
    )


def _plain(item: BareTopology | BarePodGroup | BareDevices) -> dict[str, Any]:
    parts = (("apiVersion", item.api_version), ("metadata", item.metadata), ("spec", item.spec))
    return {name: msgspec.json.decode(bytes(raw).decode(errors="replace")) for name, raw in parts if raw}


def node_of(item: BareNode) -> Node:
    """Return a node in Coterie's units; raise ValueError for an invalid quantity."""
    spec, status = item.spec, item.status
    deleting = item.metadata.deletion_timestamp is not None
    cordoned = deleting or (spec is not None and spec.unschedulable is True)
    # The unschedulable taint is left out: `cordoned` states it, and uncordoning the node removes the taint as well.
    taints = tuple(
        Taint(taint.key, taint.value or "", taint.effect)
        for taint in (spec and spec.taints) or ()
        if not (cordoned and taint.key == _CORDON)
    )
    return Node(
        name=item.metadata.name,
        labels=item.metadata.labels or {},
        allocatable=_offered(status) if status else {},
        taints=taints,
        cordoned=cordoned,
        ready=status is None or _is_ready(status.conditions or ()),
        deleting=deleting,
    )


def pod_of(item: BarePod, templates: ClaimTemplates = NO_TEMPLATES) -> Pod | None:
    """Return a pod that holds capacity; None for finished and unscheduled pods, which hold none.

    `templates` are the devices of the cluster's claim templates.
    """
    spec = item.spec
    if spec is None or not spec.node_name or (item.status and item.status.phase in _FINISHED):
        return None
    meta = item.metadata
    labels = meta.labels
    name = f"{meta.namespace}/{meta.name}"
    controller = next((owner for owner in meta.owner_references or () if owner.controller), None)
    member = _member(labels) if labels else None
    if labels and labels.get(WORKFLOW):
        owner = labels[WORKFLOW]
    elif member:
        owner = member.workload
    else:
        owner = f"{meta.namespace}/{controller.name}" if controller else name
    return Pod(
        name=name,
        node=spec.node_name,
        requests=requests_of(spec, meta.namespace, templates),
        owner=owner,
        daemon=_is_daemon(meta, controller),
        terminating=meta.deletion_timestamp is not None,
        member=member,
        labels=labels or _NO_LABELS,
        beside=_beside(meta, spec),
    )


def _member(labels: Mapping[str, str]) -> Member | None:
    """Return the gang's task that a pod belongs to, by Coterie's labels or by Grove's, when all of them are present."""
    if WORKFLOW in labels and (own := member_of(labels)) is not None:
        return own
    if _GANG not in labels:
        return None
    part_of, gang, clique, index = (labels.get(key) for key in (_PART_OF, _GANG, _CLIQUE, _INDEX))
    return Member(part_of, gang, f"{clique}-{index}") if part_of and gang and clique and index else None


def _beside(meta: PodMeta, spec: SnapshotPodSpec) -> PodTraits | None:
    """Return a pod's affinity terms and host ports, if any; ports of init containers that end are free again."""
    ports = []
    for containers in (spec.containers, spec.init_containers):
        for container in containers or ():
            if container.ports and (containers is spec.containers or container.restart_policy == "Always"):
                ports += [port for port in container.ports if port.host_port]
    if not ports and spec.affinity is None:
        return None
    return traits_of(meta.namespace, meta.labels or {}, ports, spec.affinity)


def requests_of(spec: SnapshotPodSpec, namespace: str = "", templates: ClaimTemplates = NO_TEMPLATES) -> Amounts:
    """Return what a pod holds by Kubernetes' own rule, with its node's channel if it has a claim to one."""
    resources, claims = spec.resources, spec.resource_claims
    claimed = {CHANNEL: 1} if claims and claims_channel(claims, namespace, templates) else {}
    try:
        return claimed | pod_requests(
            (_asked(container) for container in spec.containers or ()),
            ((_asked(container), container.restart_policy == "Always") for container in spec.init_containers or ()),
            (resources.requests, resources.limits) if resources else (None, None),
            spec.overhead,
        )
    except ValueError as error:
        raise ValueError(f"requests: {error}") from None


def _asked(container: SnapshotContainer) -> Amounts:
    resources = container.resources
    return asked(resources.requests, resources.limits) if resources else {}


def _offered(status: NodeStatus) -> Amounts:
    quantities = status.allocatable
    if quantities is None and status.capacity:
        try:
            quantities = msgspec.json.decode(status.capacity, type=Quantities | None)
        except msgspec.ValidationError as error:
            raise ValueError(f"status.capacity: {error}") from None
    try:
        offered = {name: amount(name, quantity, offered=True) for name, quantity in (quantities or {}).items()}
    except ValueError as error:
        raise ValueError(f"status.allocatable: {error}") from None
    return {name: value for name, value in offered.items() if value or name == PODS}


def _is_ready(conditions: Iterable[NodeCondition]) -> bool:
    return all(condition.status == "True" for condition in conditions if condition.type == "Ready")


def _is_daemon(meta: PodMeta, controller: OwnerReference | None) -> bool:
    """Return whether a pod belongs to its node, so that it counts as used even in an empty cluster."""
    if controller and controller.kind == "DaemonSet":
        return True
    if meta.annotations and meta.annotations.mirror is not None:
        return True
    return any(owner.kind == "Node" for owner in meta.owner_references or ())
