"""The JSON of `kubectl get nodes,pods -A -o json`, with or without `clustertopologies`, `podgroups` and the like.

Accepted are a v1 List with nodes and pods in any mixture, NodeList and PodList as the API itself returns them, and a
single Node. Only the fields that placement needs are decoded; the rest of the bytes is skipped. Objects that declare
levels, and KAI's PodGroups, are kept unchanged; claims and slices show which NVLink channels are taken.

A list of only these kinds is decoded in one pass. When that fails, because the list has other kinds or an error, a
second and slower pass decodes each item separately and can report the fault and its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from coterie.document.json_faults import COMMAND, HINT, field_problem, not_a_list, not_json, utf8
from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.sources import GangPod, Snapshot
from coterie.sources.assemble import assemble, refuse, shortened
from coterie.sources.claims import BareClaim, BareSlice, ClaimItem, SliceItem, with_claims
from coterie.sources.kubernetes_objects import (
    DEVICES,
    TOPOLOGIES,
    BareDevices,
    BareNode,
    BarePod,
    BarePodGroup,
    BareTopology,
    ClaimTemplateItem,
    ClusterTopologyBindingItem,
    ClusterTopologyItem,
    ComputeDomainItem,
    NodeItem,
    PodGroupItem,
    PodItem,
    TopologyItem,
    device_object,
    gang_pod_of,
    node_of,
    pod_group_object,
    pod_of,
    topology_object,
)
from coterie.topology.cluster import Node, Pod
from coterie.topology.devices import claim_templates

# Kinds that are common in such clusters; leaving them out needs no notice.
_QUIET = frozenset(
    {"Queue", "BindRequest", "ComputeDomainClique", "DeviceClass"}
    | {"PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang", "DynamoGraphDeployment"}
)
# The kind of a list's items when they do not state it themselves.
_LISTS = {"List": "", "NodeList": "Node", "PodList": "Pod"}

_Item = BareNode | BarePod | BareTopology | BarePodGroup | BareDevices | BareClaim | BareSlice
_Tagged = (
    NodeItem
    | PodItem
    | ClusterTopologyItem
    | ClusterTopologyBindingItem
    | TopologyItem
    | PodGroupItem
    | ComputeDomainItem
    | ClaimTemplateItem
    | ClaimItem
    | SliceItem
)


class _Mixture(msgspec.Struct, gc=False):
    items: list[_Tagged]
    kind: str = ""


class _Document(msgspec.Struct):
    kind: str = ""
    message: msgspec.Raw = msgspec.Raw(b'""')
    items: msgspec.Raw = msgspec.Raw(b"[]")


class _Names(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Kind(msgspec.Struct):
    kind: str = ""


class _Named(msgspec.Struct):
    metadata: _Names = msgspec.field(default_factory=_Names)


_MIXTURE = msgspec.json.Decoder(_Mixture)
_DOCUMENT = msgspec.json.Decoder(_Document)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw] | None)
_KIND = msgspec.json.Decoder(_Kind)
_NAMED = msgspec.json.Decoder(_Named)
_NODE = msgspec.json.Decoder(BareNode)
_POD = msgspec.json.Decoder(BarePod)
_OTHERS: dict[str, msgspec.json.Decoder[BarePodGroup | BareDevices | BareClaim | BareSlice]] = {
    **{kind: msgspec.json.Decoder(item) for kind, item in DEVICES.items()},
    "PodGroup": msgspec.json.Decoder(BarePodGroup),
    "ResourceClaim": msgspec.json.Decoder(BareClaim),
    "ResourceSlice": msgspec.json.Decoder(BareSlice),
}
_TOPOLOGIES = {kind: msgspec.json.Decoder(item) for kind, item in TOPOLOGIES.items()}


def read_kubectl(data: bytes, file: str) -> Snapshot:
    """Return the snapshot in kubectl's output; raise SpecErrors for anything else."""
    where = Place(file)
    items, notices = _items(utf8(data, where), where)
    nodes: list[Node] = []
    pods: list[Pod] = []
    objects: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    gang_pods: list[GangPod] = []
    claims: list[BareClaim] = []
    slices: list[BareSlice] = []
    pods_seen = 0
    faults: list[Fault] = []
    devices = [device_object(item) for item in items if isinstance(item, BareDevices)]
    templates = claim_templates(devices)
    for item in items:
        if isinstance(item, BareDevices):
            continue
        if isinstance(item, BareTopology):
            objects.append(topology_object(item))
            continue
        if isinstance(item, BarePodGroup):
            if (group := pod_group_object(item)) is not None:
                groups.append(group)
            continue
        if isinstance(item, BareClaim):
            claims.append(item)
            continue
        if isinstance(item, BareSlice):
            slices.append(item)
            continue
        try:
            if isinstance(item, BareNode):
                nodes.append(node_of(item))
            else:
                pods_seen += 1
                if (pod := pod_of(item, templates)) is not None:
                    pods.append(pod)
                if (member := gang_pod_of(item)) is not None:
                    gang_pods.append(member)
        except ValueError as error:
            hint = "Correct the object in the cluster, or leave it out of the snapshot."
            faults.append(Fault(f"{_title(item)}: {error}", hint=hint, place=where))
    refuse(faults)
    if not nodes:
        found = "only pods" if pods_seen else "neither nodes nor pods"
        raise SpecErrors([Fault(f"there are {found} in it, and a cluster needs nodes", hint=HINT, place=where)])
    assembly = assemble(*with_claims(nodes, pods, claims, slices), where)
    if not pods_seen:
        lone = f"the snapshot has no pods, so every node counts as empty; with pods: {COMMAND}"
        notices = [*notices, Notice("NoPods", lone, where)]
    return Snapshot(
        assembly.cluster,
        None,
        (*notices, *assembly.notices),
        tuple(objects),
        pod_groups=tuple(groups),
        gang_pods=tuple(gang_pods),
        devices=tuple(devices),
    )


def _items(data: bytes, where: Place) -> tuple[Sequence[_Item], list[Notice]]:
    try:
        mixture = _MIXTURE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _one_by_one(data, where)
    return (mixture.items, []) if mixture.kind in _LISTS else _one_by_one(data, where)


def _one_by_one(data: bytes, where: Place) -> tuple[list[_Item], list[Notice]]:
    kind, raws = _raw_items(data, where)
    assumed = _LISTS.get(kind, "")
    items: list[_Item] = []
    ignored: Counter[str] = Counter()
    faults: list[Fault] = []
    for index, raw in enumerate(raws):
        own = assumed
        try:
            own = _KIND.decode(raw).kind or assumed
            if own in {"Node", "Pod"}:
                items.append(_NODE.decode(raw) if own == "Node" else _POD.decode(raw))
            elif own in _TOPOLOGIES:
                items.append(_TOPOLOGIES[own].decode(raw))
            elif own in _OTHERS:
                items.append(_OTHERS[own].decode(raw))
            else:
                ignored[own] += 1
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            path, problem = field_problem(error)
            title = _raw_title(raw, own) if kind in _LISTS else own.lower()
            position = f"item {index + 1}, " if kind in _LISTS else ""
            faults.append(Fault(f"{position}{title}: {problem}", place=where, path=("items", index, path), hint=HINT))
    refuse(faults)
    return items, _about(ignored, where)


def _raw_items(data: bytes, where: Place) -> tuple[str, list[msgspec.Raw]]:
    try:
        document = _DOCUMENT.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SpecErrors([not_a_list(data, error, where)]) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise SpecErrors([not_json(data, error, where)]) from None
    if document.kind in {"Node", "Pod"}:
        return document.kind, [msgspec.Raw(data)]
    if document.kind == "Status":
        problem = f"this is an error that kubectl printed, not a cluster: {shortened(_text(document.message), 400)}"
        hint = "Take the snapshot again, as a user who may list nodes and pods in all namespaces."
        raise SpecErrors([Fault(problem, hint=hint, place=where, path=("message",))])
    if document.kind not in _LISTS:
        found = f'it is a "{shortened(document.kind, 60)}"' if document.kind else 'it has no "kind"'
        problem = f"{found}, and a List of nodes and pods is needed"
        raise SpecErrors([Fault(problem, hint=HINT, place=where, path=("kind",))])
    try:
        return document.kind, _RAWS.decode(document.items) or []
    except msgspec.ValidationError:
        raise SpecErrors([Fault('"items" is not a list', hint=HINT, place=where, path=("items",))]) from None


def _text(raw: msgspec.Raw) -> str:
    """Return a text, or an empty one where the value is something else."""
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return "it has no message"


def _raw_title(raw: msgspec.Raw, kind: str) -> str:
    try:
        meta = _NAMED.decode(raw).metadata
    except (msgspec.ValidationError, UnicodeDecodeError):
        return kind.lower() or "of no kind"
    name = "/".join(part for part in (meta.namespace, meta.name) if part)
    return f'{kind.lower()} "{shortened(name, 80)}"' if name else kind.lower()


def _title(item: BareNode | BarePod) -> str:
    if isinstance(item, BareNode):
        return f'node "{shortened(item.metadata.name, 80)}"'
    return f'pod "{shortened(f"{item.metadata.namespace}/{item.metadata.name}", 80)}"'


def _about(ignored: Counter[str], where: Place) -> list[Notice]:
    strange = {kind: count for kind, count in sorted(ignored.items()) if kind not in _QUIET}
    if not strange:
        return []
    kinds = ", ".join(f"{count} {kind or 'without a kind'}" for kind, count in strange.items())
    return [Notice("KindsIgnored", f"ignored, because they are neither nodes nor pods: {shortened(kinds)}", where)]
