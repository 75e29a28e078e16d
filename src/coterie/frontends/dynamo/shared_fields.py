"""The parts that both versions of a graph deployment share: single values, pod templates, constraints, overrides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from coterie.document.schema import DocumentModel, Many, TypeName, Wrong, rule, said
from coterie.topology.levels import label_fault

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?")
_VERSION = re.compile(r"(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3})){2}")
_QUANTITY = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?")
_LARGEST = (1 << 31) - 1


def _whole(lowest: int) -> Callable[[int], Iterator[Wrong]]:
    def check(value: int) -> Iterator[Wrong]:
        if not lowest <= value <= _LARGEST:
            yield Wrong(f"{{field}} must be a whole number from {lowest} to {_LARGEST}, not {said(value)}")

    return check


def _matching(pattern: re.Pattern[str], words: str, longest: int, hint: str) -> Callable[[str], Iterator[Wrong]]:
    def check(value: str) -> Iterator[Wrong]:
        if len(value) > longest or not pattern.fullmatch(value):
            yield Wrong(f"{{field}} must be {words}, not {said(value)}", hint)

    return check


def _not_empty(value: str) -> Iterator[Wrong]:
    if not value:
        yield Wrong("{field} must not be empty", "Name the ClusterTopology whose levels are meant.")


def _label_key(value: str) -> Iterator[Wrong]:
    if problem := label_fault(value):
        yield Wrong(f"{said(value)} is not a node label: {problem}", "Example: topology.kubernetes.io/zone")


def _weight(value: float) -> Iterator[Wrong]:
    if not 0 <= value <= 1:
        yield Wrong(f"{{field}} must be from 0 to 1, not {said(value)}")


def is_quantity(value: object) -> bool:
    """Return whether a value is a Kubernetes quantity."""
    return isinstance(value, int | str) and not isinstance(value, bool) and bool(_QUANTITY.fullmatch(str(value)))


def _quantity(value: object) -> Iterator[Wrong]:
    if not is_quantity(value):
        yield Wrong(f"{{field}} must be an amount such as 16Gi, not {said(value)}")
    elif str(value).startswith("-"):
        yield Wrong(f"{{field}} must not be negative, but is {said(value)}", 'Write "0" for none.')


Domain = Annotated[
    str,
    rule(
        _matching(
            _DOMAIN,
            'lower-case letters, digits and "-", beginning and ending with a letter or digit',
            63,
            "A domain is a level of the ClusterTopology, such as rack.",
        )
    ),
    TypeName("a level such as rack"),
]
ComponentName = Annotated[
    str,
    rule(
        _matching(
            _NAME,
            'at most 63 letters, digits and "-", beginning and ending with a letter or digit',
            63,
            "Example: Decode",
        )
    ),
    TypeName("a name"),
]
TopologyName = Annotated[str, rule(_not_empty), TypeName("the name of a ClusterTopology")]
RuntimeVersion = Annotated[
    str, rule(_matching(_VERSION, "a version such as 1.4.0", 14, "Three numbers separated by dots."))
]
LabelKey = Annotated[str, rule(_label_key)]
Weight = Annotated[float, rule(_weight), TypeName("a number from 0 to 1")]
Amount = Annotated[Any, rule(_quantity), TypeName("an amount such as 16Gi")]
Replicas = Annotated[int, rule(_whole(0)), TypeName("a whole number")]
MinAvailable = Annotated[int, rule(_whole(1)), TypeName("a whole number, at least 1")]
NodeCount = Annotated[int, rule(_whole(2)), TypeName("a whole number, at least 2")]
Framework = Literal["sglang", "vllm", "trtllm"]
Texts = dict[str, str]


class PassThroughModel(DocumentModel):
    """The base of native Kubernetes parts: only the fields read here have a shape, the rest is passed through."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class EnvVar(PassThroughModel):
    """One environment variable of a container."""

    name: str = Field(description="The variable's name.")
    value: str | None = Field(None, description="Its value.")


class MainContainer(PassThroughModel):
    """The fields of a container whose name is known."""

    image: str | None = Field(None, description="The image to run.")
    env: Many[EnvVar] | None = Field(None, description="Environment variables.")
    resources: dict[str, Any] | None = Field(None, description="Requests and limits.")
    volume_mounts: Many[dict[str, Any]] | None = Field(None, alias="volumeMounts", description="Volumes mounted.")


class PodContainer(MainContainer):
    """One container of a pod."""

    name: str = Field(description="The container's name.")


class PodSpecFields(PassThroughModel):
    """The spec of a pod."""

    containers: Many[PodContainer] | None = Field(None, description="The containers; the one called main is Dynamo's.")
    volumes: Many[dict[str, Any]] | None = Field(None, description="The volumes of the pod.")
    scheduler_name: str | None = Field(None, alias="schedulerName", description="The scheduler that places the pod.")


class PodMetadata(PassThroughModel):
    """Labels and annotations of pods."""

    labels: Texts | None = Field(None, description="Labels of the pods.")
    annotations: Texts | None = Field(None, description="Annotations of the pods.")


class ObjectMetadata(PodMetadata):
    """Metadata of the graph itself."""

    generation: int | None = Field(None, description="Increases with each change of the spec.")


class PodTemplate(PassThroughModel):
    """A native pod template."""

    metadata: PodMetadata | None = Field(None, description="Labels and annotations of the pods.")
    spec: PodSpecFields | None = Field(None, description="The spec of the pods.")


class ComponentConstraint(DocumentModel):
    """The level that a component's replicas share."""

    pack_domain: Domain = Field(alias="packDomain", description="The level within which each replica is packed.")


class ProviderOverride(DocumentModel):
    """A fragment of Grove's own API that is merged into the generated object."""

    api_version: str = Field(alias="apiVersion", description="The version of Grove's API, grove.io/v1alpha1.")
    target: str | None = Field(None, description="The kind that the piece belongs to; it follows from the place.")
    value: dict[str, Any] = Field(description="The piece; it may set only topologyConstraint.")


class MultinodeRole(DocumentModel):
    """The leader or the workers of a multinode component."""

    provider_override: ProviderOverride | None = Field(
        None, alias="providerOverride", description="A piece of Grove's API for the clique of this role."
    )


class NamedRole(MultinodeRole):
    """A role of a multinode component in the list form."""

    name: Literal["leader", "worker"] = Field(description="Which role it is.")
    replicas: MinAvailable | None = Field(None, description="Pods of the role in one copy; it follows from nodeCount.")


class Multinode(DocumentModel):
    """The number of nodes that each replica spans."""

    node_count: NodeCount = Field(2, alias="nodeCount", description="Nodes of one replica, at least 2.")
    leader: MultinodeRole | None = Field(None, description="The leader's clique.")
    worker: MultinodeRole | None = Field(None, description="The workers' clique.")


class TransferPolicyModel(DocumentModel):
    """The decode workers that a prefill worker sends its cache to."""

    cluster_topology_name: TopologyName | None = Field(
        None, alias="clusterTopologyName", description="The ClusterTopology whose level is meant."
    )
    label_key: LabelKey | None = Field(None, alias="labelKey", description="The node label instead of a topology.")
    domain: Domain = Field(description="The level to stay within.")
    enforcement: Literal["required", "preferred"] = Field("required", description="Whether it must hold.")
    preferred_weight: Weight | None = Field(
        None, alias="preferredWeight", description="The weight of the preference, from 0 to 1."
    )


class GraphExperimental(DocumentModel):
    """Preview features of the whole graph."""

    kv_transfer_policy: TransferPolicyModel | None = Field(
        None, alias="kvTransferPolicy", description="Routing of cache transfers by topology."
    )
    component_groups: Any = Field(None, alias="componentGroups", description="Components that scale together.")


class GroveOptions(DocumentModel):
    """The options for a component on Grove."""

    force_scaling_group: bool | None = Field(
        None, alias="forceScalingGroup", description="Make a scaling group of a single-node component."
    )


class ComponentExperimental(DocumentModel):
    """Preview features of one component."""

    grove: GroveOptions | None = Field(None, description="How the component is given to Grove.")
    gpu_memory_service: Any = Field(None, alias="gpuMemoryService", description="Sharing of GPU memory.")
    failover: Any = Field(None, description="A standby engine beside each engine.")
    checkpoint: Any = Field(None, description="Snapshots of containers.")
