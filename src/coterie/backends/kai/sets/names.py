"""The names of a set's objects: Grove's names where pods rely on them, and distinct ones elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.names import name_of
from coterie.config.configuration import Pool
from coterie.frontends.grove.podcliqueset.lower import LoweredSet
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.queue import resolve_queue
from coterie.frontends.grove.topology import ClusterTopology

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class CompiledSet:
    """A valid set, compiled for a pool.

    `name` is that of the document the user wrote, which may be a graph deployment. `topology` is the ClusterTopology
    that the set names, empty for none.
    """

    name: str
    pcs: PodCliqueSet
    lowered: LoweredSet
    pool: Pool
    topology: str = ""


@dataclass(frozen=True)
class SetContext(ManifestContext):
    """The inputs of the names of a set's objects; a set may name its queue and its topology itself.

    KAI confuses PodGroups of one name in two namespaces, so their names have a digest, and so have those of pods.
    """

    named_queue: str = ""
    named_topology: str = ""

    @staticmethod
    def of(subject: CompiledSet, namespace: str, declared: ClusterTopology | None = None) -> SetContext:
        """Return the context of a set in a namespace; `declared` is the ClusterTopology that it names, if known."""
        pcs = subject.pcs
        labels = mirrored(pcs.labels)
        return SetContext(
            namespace,
            subject.name,
            subject.pool,
            labels,
            declared,
            named_queue=resolve_queue(pcs),
            named_topology=subject.topology,
        )

    @property
    def queue(self) -> str:
        """The queue that the set names, or else that of the pool."""
        return self.named_queue or super().queue

    @property
    def topology(self) -> str:
        """The name of KAI's topology: that of the ClusterTopology, unless it refers to another."""
        return self.external_topology or self.named_topology

    def gang(self, group: str) -> str:
        """Return the name of a gang's PodGroup: Grove's, made unique in the cluster."""
        return name_of([group], "podcliqueset", self.namespace, self.workflow, group)

    def pod(self, task: str, attempt: int) -> str:
        """Return the name of one attempt at a pod; its host name is the same for every attempt."""
        return name_of([task], "pod", self.namespace, self.workflow, task, str(attempt))


def replica_name(pcs: PodCliqueSet, replica: int) -> str:
    """Return the name of a replica of a set: of its base gang, and of the Service that gives its pods addresses."""
    return f"{pcs.name}-{replica}"


def mirrored(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the labels or annotations of a set for its PodGroups: all that are not Grove's or kubectl's."""
    return {key: text for key, text in texts.items() if not key.startswith("grove.io/") and key != _LAST_APPLIED}
