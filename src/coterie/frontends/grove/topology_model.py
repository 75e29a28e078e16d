"""The fields of a ClusterTopology and of a ClusterTopologyBinding, the same object under its later name."""

from __future__ import annotations

from pydantic import Field

from coterie.document.schema import DocumentModel, Many
from coterie.frontends.kubernetes.objects import KubernetesObject

_LEVELS = "The levels, from the coarsest to the finest, each {domain: NAME, key: LABEL}."
_SCHEDULER = "The scheduler whose topology resource is managed by somebody else, such as kai-scheduler."
_REFERENCE = "The name of that scheduler's topology resource."


class TopologyLevelModel(DocumentModel):
    """One level."""

    domain: str = Field(description="The short name of the level, which workloads use, such as rack.")
    key: str = Field(description="The node label whose values are the domains of the level.")


class ReferenceModel(DocumentModel):
    """A scheduler's own topology resource, in a ClusterTopology."""

    scheduler: str = Field(alias="schedulerName", description=_SCHEDULER)
    reference: str = Field(description=_REFERENCE)


class BindingModel(DocumentModel):
    """A scheduler's own topology resource, in a ClusterTopologyBinding."""

    scheduler: str = Field(alias="schedulerName", description=_SCHEDULER)
    reference: str = Field(alias="topologyReference", description=_REFERENCE)


class TopologySpec(DocumentModel):
    """The declarations of a ClusterTopology."""

    levels: Many[TopologyLevelModel] = Field(description=_LEVELS)
    references: Many[ReferenceModel] | None = Field(
        None, alias="schedulerReferences", description="Topology resources of schedulers that are managed elsewhere."
    )


class BindingSpec(DocumentModel):
    """The declarations of a ClusterTopologyBinding."""

    levels: Many[TopologyLevelModel] = Field(description=_LEVELS)
    references: Many[BindingModel] | None = Field(
        None,
        alias="schedulerTopologyBindings",
        description="Topology resources of schedulers that are managed elsewhere.",
    )


class ClusterTopologyModel(KubernetesObject):
    """A whole ClusterTopology."""

    spec: TopologySpec = Field(description=f"What the topology is. levels: {_LEVELS}")


class ClusterTopologyBindingModel(KubernetesObject):
    """A whole ClusterTopologyBinding."""

    spec: BindingSpec = Field(description=f"What the topology is. levels: {_LEVELS}")
