"""The nodes and pods of a cluster as dense arrays.

`Cluster` is immutable. Free capacity, which changes from one placement to the next, is kept apart from it
(`coterie.placement.capacity`), so that one cluster serves any number of plans.

Labels are stored by column: for each label key the distinct values once, and one small integer per node. Selectors and
domains are computed from these columns, and they keep the memory of a hundred thousand nodes small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coterie.topology.display_names import natural
from coterie.topology.pod_affinity import PodTraits

GPU = "nvidia.com/gpu"
# Whole GPUs by the names that device plugins give them. Partitions of NVIDIA's (MIG) are resources of their own.
GPUS = (GPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
_PARTITION = "nvidia.com/mig-"
CPU = "cpu"
MEMORY = "memory"
STORAGE = "ephemeral-storage"
PODS = "pods"

# The pod capacity of a node that states none: more than any gang needs.
UNLIMITED_PODS = 1 << 30

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Taint:
    """A node taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @property
    def transient(self) -> bool:
        """Whether Kubernetes itself sets and lifts this taint as a node's condition changes."""
        return self.key.startswith("node.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class Node:
    """One node as a source read it: cpu in thousandths, memory in bytes, the rest in pieces.

    A node that is being deleted counts as cordoned, for good.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """The workload, group and task that a pod belongs to, by Coterie's own labels."""

    workload: str
    group: str
    task: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that holds capacity on a node; finished pods are not part of a cluster.

    `labels` is None where the source does not know them. `beside` holds the affinity terms and host ports of the few
    pods that have any.
    """

    name: str
    node: str
    requests: Mapping[str, int]
    owner: str = ""
    daemon: bool = False
    terminating: bool = False
    member: Member | None = None
    labels: Mapping[str, str] | None = None
    beside: PodTraits | None = None

    @property
    def traits(self) -> PodTraits | None:
        """The properties that decide which pods can run beside this one; None where they are not known."""
        if self.beside is not None or self.labels is None:
            return self.beside
        return PodTraits(self.name.partition("/")[0], self.labels)


@dataclass(frozen=True, slots=True)
class Column:
    """One label key over all nodes: `values[codes[n]]`, or no label where the code is -1."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Nodes sorted by name, and the pods on them. Arrays of capacity are indexed [resource, node]."""

    names: tuple[str, ...]
    columns: Mapping[str, Column]
    resources: tuple[str, ...]
    allocatable: Ints
    taint_sets: tuple[tuple[Taint, ...], ...]
    taint_set: npt.NDArray[np.int32]
    cordoned: Bools
    ready: Bools
    pods: tuple[Pod, ...]
    pod_node: npt.NDArray[np.int32]
    pod_requests: Ints
    deleting: frozenset[str] = frozenset()  # names of nodes that are being deleted; they are among the cordoned ones

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index of each node by its name."""
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def daemons(self) -> Ints:
        """The capacity held by DaemonSet pods, as [resource, node]."""
        return self.held(index for index, pod in enumerate(self.pods) if pod.daemon)

    @cached_property
    def gpu_rows(self) -> list[int]:
        """The rows of all kinds of GPUs."""
        return [row for row, name in enumerate(self.resources) if name in GPUS]

    @cached_property
    def has_gpus(self) -> Bools:
        """Whether each node offers GPUs, whole or in partitions."""
        rows = [row for row, name in enumerate(self.resources) if is_gpu(name)]
        found: Bools = np.logical_or.reduce(self.allocatable[rows] > 0)
        return found

    @cached_property
    def partitioned(self) -> Bools:
        """Whether each node offers partitions of GPUs."""
        rows = [row for row, name in enumerate(self.resources) if name.startswith(_PARTITION)]
        found: Bools = np.logical_or.reduce(self.allocatable[rows] > 0)
        return found

    def gpus(self, amounts: Ints) -> Ints:
        """Return the GPUs, of whatever vendor, among amounts whose first index is the resource."""
        found: Ints = amounts[self.gpu_rows].sum(axis=0)
        return found

    def resource(self, name: str) -> int:
        """Return the row of a resource, or -1 when no node and no pod knows it."""
        try:
            return self.resources.index(name)
        except ValueError:
            return -1

    def column(self, label: str) -> Column:
        """Return one label over all nodes; a label that no node has is an empty column."""
        return self.columns.get(label) or Column((), np.full(len(self), -1, dtype=np.int32))

    def label(self, node: int, key: str) -> str | None:
        """Return one node's value of a label."""
        column = self.columns.get(key)
        if column is None or column.codes[node] < 0:
            return None
        return column.values[int(column.codes[node])]

    def held(self, which: Iterable[int]) -> Ints:
        """Sum what the pods at these indices hold, as [resource, node]."""
        held = np.zeros_like(self.allocatable)
        chosen = np.fromiter(which, dtype=np.int64)
        if len(chosen):
            np.add.at(held.T, self.pod_node[chosen], self.pod_requests.T[chosen])
        return held

    @staticmethod
    def of(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> Cluster:
        """Build a cluster from nodes with distinct names; pods on unknown nodes are left out."""
        ordered = sorted(nodes, key=lambda node: by_name(node.name))
        names = tuple(node.name for node in ordered)
        position = {name: index for index, name in enumerate(names)}
        placed = sorted((pod for pod in pods if pod.node in position), key=lambda pod: pod.name)
        resources = _resource_names(ordered, placed)
        rows = {name: row for row, name in enumerate(resources)}

        allocatable = np.zeros((len(resources), len(ordered)), dtype=np.int64)
        allocatable[rows[PODS]] = UNLIMITED_PODS
        for index, node in enumerate(ordered):
            for name, amount in node.allocatable.items():
                allocatable[rows[name], index] = amount
        pod_requests = np.zeros((len(resources), len(placed)), dtype=np.int64)
        pod_requests[rows[PODS]] = 1
        for index, pod in enumerate(placed):
            for name, amount in pod.requests.items():
                pod_requests[rows[name], index] = amount

        taint_ids: dict[tuple[Taint, ...], int] = {}
        taint_set = [taint_ids.setdefault(node.taints, len(taint_ids)) for node in ordered]
        return Cluster(
            names=names,
            columns=_columns(ordered),
            resources=resources,
            allocatable=allocatable,
            taint_sets=tuple(taint_ids),
            taint_set=np.array(taint_set, dtype=np.int32),
            cordoned=np.array([node.cordoned for node in ordered], dtype=bool),
            ready=np.array([node.ready for node in ordered], dtype=bool),
            pods=tuple(placed),
            pod_node=np.array([position[pod.node] for pod in placed], dtype=np.int32),
            pod_requests=pod_requests,
            deleting=frozenset(node.name for node in ordered if node.deleting),
        )


def gpu_count(amounts: Iterable[tuple[str, int]]) -> int:
    """Return the number of GPUs, of whatever vendor, among amounts of resources; partitions are not GPUs."""
    return sum(amount for name, amount in amounts if name in GPUS)


def is_gpu(resource: str) -> bool:
    """Return whether a resource is a GPU or a partition of one."""
    return resource in GPUS or resource.startswith(_PARTITION)


def by_name(name: str) -> tuple[tuple[tuple[str, int], ...], str]:
    """Return a sort key for names: natural order, then the spelling, which tells `n1` from `n01`."""
    return natural(name), name


def _resource_names(nodes: Sequence[Node], pods: Sequence[Pod]) -> tuple[str, ...]:
    known = {CPU, MEMORY, PODS, GPU}
    for node in nodes:
        known.update(node.allocatable)
    for pod in pods:
        known.update(pod.requests)
    return tuple(sorted(known))


def _columns(nodes: Sequence[Node]) -> dict[str, Column]:
    found: dict[str, tuple[dict[str, int], list[int], list[int]]] = {}  # by key: values, nodes, code of each node
    for index, node in enumerate(nodes):
        for key, value in node.labels.items():
            values, where, codes = found.get(key) or found.setdefault(key, ({}, [], []))
            where.append(index)
            codes.append(values.setdefault(value, len(values)))
    columns = {}
    for key in sorted(found):
        values, where, codes = found[key]
        column = np.full(len(nodes), -1, dtype=np.int32)
        column[where] = codes
        columns[key] = Column(tuple(values), column)
    return columns
