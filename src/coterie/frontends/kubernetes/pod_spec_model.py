"""The schema of the pod-spec fields that Coterie reads; every other field of a pod spec may be anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from coterie.document.schema import DocumentModel, Many, TypeName, Wrong, rule, said
from coterie.topology.quantity import amount

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _quantities(found: Mapping[str, Any]) -> Iterator[Wrong]:
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            hint = f'Put it in quotes: "{said(value)}"' if isinstance(value, float) else 'Example: 4, "500m" or 16Gi.'
            yield Wrong(f"{name} must be a quantity, not {said(value)}", hint, (name,))
            continue
        try:
            amount(name, value)
        except ValueError as error:
            yield Wrong(f"{name}: {error}", 'Example: 4, "500m" or 16Gi.', (name,))


Quantities = Annotated[dict[str, Any], rule(_quantities), TypeName("a mapping of resources to quantities")]


class PartialModel(DocumentModel):
    """The base of partly read models: other fields may be anything."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class ResourcesModel(PartialModel):
    """The requests and limits of a container, or of a pod as a whole."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class PortModel(PartialModel):
    """A port of a container; a host port can be used only once on a node."""

    container_port: int | None = Field(None, alias="containerPort")
    host_port: int | None = Field(None, alias="hostPort")
    host_ip: str | None = Field(None, alias="hostIP")
    protocol: str | None = None


class ContainerModel(PartialModel):
    """A container; an init container that always restarts is a sidecar."""

    name: str = Field(description="Every container has a name.")
    resources: ResourcesModel | None = None
    restart_policy: str | None = Field(None, alias="restartPolicy")
    ports: Many[PortModel] | None = None


class ExpressionModel(PartialModel):
    """A condition on a node's labels or fields."""

    key: str
    operator: str
    values: Many[str] | None = None


class TermModel(PartialModel):
    """Conditions that must all hold."""

    expressions: Many[ExpressionModel] | None = Field(None, alias="matchExpressions")
    fields: Many[ExpressionModel] | None = Field(None, alias="matchFields")


class NodeSelectorModel(PartialModel):
    """Terms of which one must hold."""

    terms: Many[TermModel] = Field(alias="nodeSelectorTerms")


class NodeAffinityModel(PartialModel):
    """The required and preferred nodes."""

    required: NodeSelectorModel | None = Field(None, alias=_REQUIRED)
    preferred: Many[Any] | None = Field(None, alias=_PREFERRED)


class LabelSelectorModel(PartialModel):
    """Conditions on labels that must all hold; without any, everything is selected."""

    labels: dict[str, str] | None = Field(None, alias="matchLabels")
    expressions: Many[ExpressionModel] | None = Field(None, alias="matchExpressions")


class PodTermModel(PartialModel):
    """Pods by their labels, and the node label whose domains count."""

    topology_key: str = Field(alias="topologyKey", description="The node label whose domains count.")
    selector: LabelSelectorModel | None = Field(None, alias="labelSelector")
    namespaces: Many[str] | None = None
    namespace_selector: LabelSelectorModel | None = Field(None, alias="namespaceSelector")
    same: Many[str] | None = Field(None, alias="matchLabelKeys")
    different: Many[str] | None = Field(None, alias="mismatchLabelKeys")


class PodAffinityModel(PartialModel):
    """The required and preferred pods nearby, or apart."""

    required: Many[PodTermModel] | None = Field(None, alias=_REQUIRED)
    preferred: Many[Any] | None = Field(None, alias=_PREFERRED)


class AffinityModel(PartialModel):
    """All affinities of a pod."""

    node: NodeAffinityModel | None = Field(None, alias="nodeAffinity")
    pod: PodAffinityModel | None = Field(None, alias="podAffinity")
    anti: PodAffinityModel | None = Field(None, alias="podAntiAffinity")


class TolerationModel(PartialModel):
    """A taint that the pod tolerates."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class SpreadModel(PartialModel):
    """A topology spread constraint."""

    when: str | None = Field(None, alias="whenUnsatisfiable")


class VolumeModel(PartialModel):
    """A volume; one from a claim may be bound to some nodes."""

    claim: Any = Field(None, alias="persistentVolumeClaim")
    ephemeral: Any = None


class ClaimModel(PartialModel):
    """A device claim: the pod's own, made from a template, or an existing one."""

    name: str
    template: str | None = Field(None, alias="resourceClaimTemplateName")
    claim: str | None = Field(None, alias="resourceClaimName")


class PodSpecModel(PartialModel):
    """The fields of a pod spec that placement depends on."""

    containers: Many[ContainerModel] = Field(description="The containers of the pod.")
    init_containers: Many[ContainerModel] | None = Field(None, alias="initContainers")
    overhead: Quantities | None = None
    resources: ResourcesModel | None = None
    node_name: str | None = Field(None, alias="nodeName")
    node_selector: dict[str, str] | None = Field(None, alias="nodeSelector")
    affinity: AffinityModel | None = None
    tolerations: Many[TolerationModel] | None = None
    spread: Many[SpreadModel] | None = Field(None, alias="topologySpreadConstraints")
    host_network: bool | None = Field(None, alias="hostNetwork")
    claims: Many[ClaimModel] | None = Field(None, alias="resourceClaims")
    volumes: Many[VolumeModel] | None = None
    gates: Many[Any] | None = Field(None, alias="schedulingGates")
    scheduler_name: str | None = Field(None, alias="schedulerName")
    runtime_class: str | None = Field(None, alias="runtimeClassName")
    restart_policy: str | None = Field(None, alias="restartPolicy")
