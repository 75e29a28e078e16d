"""The identity of objects: names, and the labels by which Coterie and KAI recognise their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import LONGEST, label_value, name_of
from coterie.config.configuration import Pool
from coterie.frontends.grove.kai_topology import COTERIE, MANAGED_BY
from coterie.frontends.grove.topology import KAI, ClusterTopology
from coterie.sources.task_labels import ATTEMPT, GROUP, WORKFLOW

# Names derived from a gang's get suffixes, and stay within the limits of Kubernetes.
_LONGEST_GANG = 52

MANAGED = {MANAGED_BY: COTERIE}
STORE = "coterie.dev/store"
POOL = "coterie.dev/pool"
BACKEND = "coterie.dev/backend"


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """The inputs of the names of a workflow's objects; `declared` is the ClusterTopology of its levels, if any.

    `store` identifies the service that runs the workflow, so that objects of two services have different names; it is
    empty for manifests that a user applies. `base` is the placement of the group, of which a retry makes another.
    """

    namespace: str
    workflow: str
    pool: Pool
    own_labels: Mapping[str, str] = field(default_factory=dict)
    declared: ClusterTopology | None = None
    store: str = ""
    base: int = 1
    priority: str = ""

    @property
    def workflow_id(self) -> str:
        """The workflow's id in its service; else its name with a digest, distinct from other namespaces."""
        return self.workflow if self.store else name_of([self.workflow], self.namespace, self.workflow)

    @property
    def parent_queue(self) -> str:
        """The parent queue of all pools of a namespace."""
        return self._name(["coterie", self.namespace], "queue", self.namespace)

    @property
    def queue(self) -> str:
        """The queue of the pool."""
        return self._name(["coterie", self.namespace, self.pool.name], "queue", self.namespace, self.pool.name)

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
        return self._name(words, "topology", self.namespace, self.pool.name, *levels)

    def gang(self, group: str) -> str:
        """Return the name of a group's PodGroup and ComputeDomain, unique in the whole cluster."""
        again = [str(self.base)] if self.base > 1 else []
        return self._name([self.workflow, group], self.namespace, self.workflow, group, *again, longest=_LONGEST_GANG)

    def host_domain(self, group: str) -> str:
        """Return the name of a group's Service, below which its hosts are found, the same for every placement."""
        return replace(self, base=1).gang(group)

    def pod(self, task: str, attempt: int) -> str:
        """Return the name of one attempt at a task; the next attempt is another pod."""
        return self._name([self.workflow, task], "pod", self.namespace, self.workflow, task, str(attempt))

    def files(self, group: str, kind: str, contents: Sequence[str]) -> str:
        """Return the name of an object that holds files of a group, distinct for other contents."""
        return self._name([self.workflow, group, "files"], kind, self.namespace, self.workflow, group, *contents)

    def domain_values(self, group: str, attempt: int) -> str:
        """Return the name of the ConfigMap with the domains of a group's tasks, of the tasks created together."""
        return self._name(
            [self.workflow, group, "domains"], "domains", self.namespace, self.workflow, group, str(attempt)
        )

    def folder_removal(self, claim: str, folder: str) -> str:
        """Return the name of the pod that removes the workflow's folder from a volume, and of its PodGroup."""
        words, identity = [self.workflow, "folder"], ("folder", self.namespace, self.workflow, claim, folder)
        return self._name(words, *identity, longest=_LONGEST_GANG)

    def _name(self, words: Sequence[str], *identity: str, longest: int = LONGEST) -> str:
        return name_of(words, *([self.store] if self.store else []), *identity, longest=longest)

    def store_labels(self) -> dict[str, str]:
        """Return the labels of objects that all pools share."""
        return {**MANAGED, STORE: self.store} if self.store else dict(MANAGED)

    def pool_labels(self) -> dict[str, str]:
        """Return the labels of objects that all workflows of the pool share."""
        pool = {POOL: label_value(self.pool.name)} if self.store else {}
        return {**self.store_labels(), **self._backend_label(), **pool}

    def _backend_label(self) -> dict[str, str]:
        """Return the label that tells apart backends of one service on the same cluster."""
        return {BACKEND: label_value(self.pool.backend)} if self.store else {}

    def labels(self, group: str) -> dict[str, str]:
        """Return the labels of all objects of a group."""
        names = {WORKFLOW: label_value(self.workflow), GROUP: label_value(group)}
        return {**self.own_labels, **self.store_labels(), **self._backend_label(), **names}

    def queue_labels(self) -> dict[str, str]:
        """Return the labels that name the queue, for KAI before and after version 0.6."""
        return {"kai.scheduler/queue": self.queue, "runai/queue": self.queue}

    def metadata(self, name: str, group: str, **more: object) -> Manifest:
        """Return the metadata of an object of a group."""
        labels = {**self.labels(group), **({ATTEMPT: str(self.base)} if self.store else {})}
        return {"name": name, "namespace": self.namespace, "labels": labels, **more}
