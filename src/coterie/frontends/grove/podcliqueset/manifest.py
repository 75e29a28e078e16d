"""The schema of a PodCliqueSet: names, types and required fields; rules are elsewhere.

Every optional field may also be null, which means the same as leaving it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from coterie.document.schema import DocumentModel, Many, TypeName, Wrong, rule, said
from coterie.frontends.grove.podcliqueset.durations import nanoseconds
from coterie.frontends.kubernetes.objects import KubernetesObject
from coterie.frontends.kubernetes.pod_spec_model import PodSpecModel

_LARGEST = (1 << 31) - 1
_DOMAIN = re.compile(r"[a-z][a-z0-9-]{0,62}")


def _int32(value: int) -> Iterator[Wrong]:
    if not -_LARGEST - 1 <= value <= _LARGEST:
        yield Wrong(f"{{field}} is out of range: {said(value)}", f"At most {_LARGEST} is allowed.")


def _domain(value: str) -> Iterator[Wrong]:
    if not _DOMAIN.fullmatch(value):
        hint = 'Use 1 to 63 lower-case letters, digits and "-", beginning with a letter, such as rack.'
        yield Wrong(f"{{field}} {said(value)} is not the name of a topology domain", hint)


Int32 = Annotated[int, rule(_int32), TypeName("a whole number")]
Domain = Annotated[str, rule(_domain), TypeName("the name of a topology domain, such as rack")]
Span = Annotated[int, BeforeValidator(nanoseconds), TypeName("a time such as 4h or 1h30m")]
Texts = dict[str, str]


class PackModel(DocumentModel):
    """The pack constraint of one instance."""

    required: Domain | None = Field(None, description="The domain that all pods of one instance must share.")
    preferred: Domain | None = Field(None, description="The domain that they share if there is room.")


class ConstraintModel(DocumentModel):
    """The pack constraint of each instance of a resource, in today's form and in the older one."""

    topology_name: str | None = Field(None, alias="topologyName", description="The name of the ClusterTopology.")
    pack: PackModel | None = Field(None, description="What is required and what is preferred.")
    pack_domain: Domain | None = Field(
        None, alias="packDomain", description="The required domain, as older files write it."
    )


class ScaleModel(DocumentModel):
    """Bounds and metrics of an autoscaler; Coterie scales nothing."""

    min_replicas: Int32 | None = Field(None, alias="minReplicas", description="The fewest replicas.")
    max_replicas: Int32 = Field(alias="maxReplicas", description="The most replicas.")
    metrics: Many[Any] | None = Field(None, description="The metrics that the autoscaler uses.")


class SharingModel(DocumentModel):
    """A device claim that pods share."""

    name: str = Field(description="The name of the claim template.")
    namespace: str | None = Field(None, description="The namespace of a template outside this object.")
    scope: str = Field(description="AllReplicas or PerReplica.")


class GroupFilterModel(DocumentModel):
    """The members of a scaling group that share a claim."""

    child_clique_names: Many[str] | None = Field(None, alias="childCliqueNames", description="Cliques that share it.")


class SetFilterModel(GroupFilterModel):
    """The parts of a set that share a claim."""

    child_group_names: Many[str] | None = Field(
        None, alias="childScalingGroupNames", description="Scaling groups that share it."
    )


class GroupSharingModel(SharingModel):
    """A device claim that the cliques of a scaling group share."""

    filter: GroupFilterModel | None = Field(None, description="Which cliques share it; without one, all.")


class SetSharingModel(SharingModel):
    """A device claim that the parts of a set share."""

    filter: SetFilterModel | None = Field(None, description="Which parts share it; without one, all.")


class ClaimTemplateModel(DocumentModel):
    """A template of device claims, kept unchanged."""

    name: str = Field(description="The name that resourceSharing refers to.")
    template_spec: dict[str, Any] = Field(alias="templateSpec", description="The claim itself.")


class CliqueSpecModel(DocumentModel):
    """The number and the template of a clique's pods."""

    role_name: str = Field(alias="roleName", description="What the pods do; unique in the set.")
    pod_spec: PodSpecModel = Field(alias="podSpec", description="The pods, as Kubernetes writes them.")
    replicas: Int32 | None = Field(None, description="The number of pods; 1 if not given.")
    min_available: Int32 | None = Field(
        None, alias="minAvailable", description="How many pods the gang needs to start; all of them if not given."
    )
    starts_after: Many[str] | None = Field(
        None, alias="startsAfter", description="Cliques that start before, with an explicit start-up order."
    )
    scale: ScaleModel | None = Field(None, alias="autoScalingConfig", description="Bounds of an autoscaler.")


class CliqueModel(DocumentModel):
    """A clique: pods of one kind."""

    name: str = Field(description="The name of the clique, unique in the set.")
    labels: Texts | None = Field(None, description="Labels of the clique's pods.")
    annotations: Texts | None = Field(None, description="Annotations of the clique's pods.")
    constraint: ConstraintModel | None = Field(
        None, alias="topologyConstraint", description="Where all pods of the clique go together."
    )
    sharing: Many[SharingModel] | None = Field(None, alias="resourceSharing", description="Device claims they share.")
    spec: CliqueSpecModel = Field(description="The pods of the clique, and how many there are.")


class GroupModel(DocumentModel):
    """A scaling group: cliques that are scaled together."""

    name: str = Field(description="The name of the group, unique in the set.")
    clique_names: Many[str] = Field(alias="cliqueNames", description="The cliques of the group.")
    annotations: Texts | None = Field(None, description="Annotations of the group.")
    replicas: Int32 | None = Field(None, description="How many replicas of the group there are; 1 if not given.")
    min_available: Int32 | None = Field(
        None, alias="minAvailable", description="How many of them the gang needs to start; 1 if not given."
    )
    scale: ScaleModel | None = Field(None, alias="scaleConfig", description="Bounds of an autoscaler.")
    sharing: Many[GroupSharingModel] | None = Field(
        None, alias="resourceSharing", description="Device claims that the cliques share."
    )
    constraint: ConstraintModel | None = Field(
        None, alias="topologyConstraint", description="Where the pods of each replica of the group go together."
    )


class HeadlessModel(DocumentModel):
    """The service that gives pods their addresses."""

    publish_not_ready: bool | None = Field(
        None, alias="publishNotReadyAddresses", description="Whether pods that are not ready have addresses."
    )


class TemplateModel(DocumentModel):
    """The template of every replica of the set."""

    cliques: Many[CliqueModel] = Field(description="The cliques of the set.")
    startup: str | None = Field(None, alias="cliqueStartupType", description="In which order cliques start.")
    priority_class: str | None = Field(None, alias="priorityClassName", description="The priority of the pods.")
    headless: HeadlessModel | None = Field(
        None, alias="headlessServiceConfig", description="The headless Service of the pods."
    )
    constraint: ConstraintModel | None = Field(
        None, alias="topologyConstraint", description="Where the pods of each replica of the set go together."
    )
    termination_delay: Span | None = Field(
        None, alias="terminationDelay", description="How long a gang may lack pods before it is ended; 4h."
    )
    claim_templates: Many[ClaimTemplateModel] | None = Field(
        None, alias="resourceClaimTemplates", description="Templates of device claims."
    )
    sharing: Many[SetSharingModel] | None = Field(
        None, alias="resourceSharing", description="Device claims that the parts of the set share."
    )
    groups: Many[GroupModel] | None = Field(
        None, alias="podCliqueScalingGroups", description="Cliques that are scaled together."
    )


class UpdateModel(DocumentModel):
    """The rollout of changes to running pods."""

    type: str | None = Field(None, description="RollingRecreate or OnDelete.")


class SetSpecModel(DocumentModel):
    """The set."""

    replicas: Int32 | None = Field(
        None, description="How many replicas of the whole set there are, each a gang of its own; 0 if not given."
    )
    update_strategy: UpdateModel | None = Field(None, alias="updateStrategy", description="How changes are made.")
    template: TemplateModel = Field(description="What every replica is made of.")


class MetadataModel(DocumentModel):
    """The metadata that Coterie reads; everything else is left to the API server."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    labels: Texts | None = Field(None, description="Labels of the set.")
    annotations: Texts | None = Field(None, description="Annotations of the set.")


class Manifest(KubernetesObject):
    """A whole PodCliqueSet."""

    metadata: MetadataModel = Field(description="Name, labels and annotations.")
    spec: SetSpecModel = Field(description="The set.")
