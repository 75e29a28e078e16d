"""The identity of objects: names, and the labels by which Coterie and KAI recognise their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value, name_of
from coterie.config.configuration import Pool
from coterie.frontends.grove.kai_topology import COTERIE, MANAGED_BY
from coterie.frontends.grove.topology import KAI, ClusterTopology
from coterie.sources.task_labels import GROUP, WORKFLOW

# Names derived from a gang's get suffixes, and stay within the limits of Kubernetes.
_LONGEST_GANG = 52

MANAGED = {MANAGED_BY: COTERIE}


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """The inputs of the names of a workflow's objects; `declared` is the ClusterTopology of its levels, if any."""

    namespace: str
    workflow: str
    pool: Pool
    own_labels: Mapping[str, str] = field(default_factory=dict)
    declared: ClusterTopology | None = None

    @property
    def workflow_id(self) -> str:
        """The workflow's name with a digest, distinct from similar names and from other namespaces."""
        return name_of([self.workflow], self.namespace, self.workflow)

    @property
    def parent_queue(self) -> str:
        """The parent queue of all pools of a namespace."""
        return name_of(["coterie", self.namespace], "queue", self.namespace)

    @property
    def queue(self) -> str:
        """The queue of the pool."""
        return name_of(["coterie", self.namespace, self.pool.name], "queue", self.namespace, self.pool.name)

    @property
    def external_topology(self) -> str:
        """The externally managed KAI Topology with these levels, empty where there is none."""
        return self.pool.kai_topology or (self.declared and self.declared.reference(KAI)) or ""

    @property
    def topology(self) -> str:
        """The KAI Topology that PodGroups name: an externally managed one, or the pool's own.

        The levels of a Topology are immutable, so other levels make another Topology.
        """
        if self.external_topology:
            return self.external_topology
        levels = [text for level in self.pool.topology.levels for text in (level.name, level.label)]
        words = ["coterie", self.namespace, self.pool.name]
        return name_of(words, "topology", self.namespace, self.pool.name, *levels)

    def gang(self, group: str) -> str:
        """Return the name of a group's PodGroup, ComputeDomain and Service, unique in the whole cluster."""
        return name_of([self.workflow, group], self.namespace, self.workflow, group, longest=_LONGEST_GANG)

    def pod(self, task: str, attempt: int) -> str:
        """Return the name of one attempt at a task; the next attempt is another pod."""
        return name_of([self.workflow, task], "pod", self.namespace, self.workflow, task, str(attempt))

    def labels(self, group: str) -> dict[str, str]:
        """Return the labels of all objects of a group."""
        return {**self.own_labels, **MANAGED, WORKFLOW: label_value(self.workflow), GROUP: label_value(group)}

    def queue_labels(self) -> dict[str, str]:
        """Return the labels that name the queue, for KAI before and after version 0.6."""
        return {"kai.scheduler/queue": self.queue, "runai/queue": self.queue}

    def metadata(self, name: str, group: str, **more: object) -> Manifest:
        """Return the metadata of an object of a group."""
        return {"name": name, "namespace": self.namespace, "labels": self.labels(group), **more}
