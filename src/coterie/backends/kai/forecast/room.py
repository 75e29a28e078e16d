"""Free capacity of nodes as KAI counts it: in domains by sums and by the largest pod, on a node exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from coterie.backends.kai.forecast.tree import Nodes
from coterie.gang.tree import Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, STORAGE, Bools, Ints
from coterie.topology.pod_affinity import counts_neighbours

Floats = npt.NDArray[np.float64]

# The share that KAI assumes for a resource that a domain does not have at all.
_MISSING = 1000.0

# The highest score for a full node, and the score for a node without GPUs for a pod without GPUs.
_DENSITY = 9.0
_NO_GPUS = 10.0


class FreeAmounts:
    """Free amounts as [resource, node], changed by `take` and returned by `give`.

    The NVLink channel of a claim counts on nodes only: KAI ignores claims when it compares domains.
    """

    def __init__(self, capacity: Capacity, tasks: Iterable[Task]) -> None:
        cluster, order = capacity.domains.cluster, capacity.domains.order
        asked = {name for task in tasks for name, _ in task.shape.requests}
        self.resources = (*cluster.resources, *sorted(asked - set(cluster.resources)))
        self.names = cluster.names
        self.free = np.zeros((len(self.resources), len(cluster)), dtype=np.int64)
        self.free[: len(cluster.resources), order] = capacity.free
        self._cluster = cluster
        self._usable = np.zeros(len(cluster), dtype=bool)
        self._usable[order] = capacity.usable
        self._row = {name: row for row, name in enumerate(self.resources)}
        # A node with a negative amount of these takes no pod, whatever the pod requests.
        self._always = [self._row[name] for name in (CPU, MEMORY, GPU)]
        self._turn = np.empty(len(cluster), dtype=np.int64)
        self._turn[sorted(range(len(cluster)), key=cluster.names.__getitem__)] = np.arange(len(cluster))
        self._needs: dict[Shape, Ints] = {}
        self._masks: dict[Shape, Bools] = {}

    def need(self, task: Task) -> Ints:
        """Return the requests of a task, by resource; a pod is one of `pods`."""
        found = self._needs.get(task.shape)
        if found is None:
            found = self._needs[task.shape] = np.zeros(len(self.resources), dtype=np.int64)
            for name, amount in ((PODS, 1), *task.shape.requests):
                found[self._row[name]] = amount
        return found

    def take(self, task: Task, node: int) -> None:
        """Charge a task to a node."""
        self.free[:, node] -= self.need(task)

    def give(self, task: Task, node: int) -> None:
        """Return the capacity of a task on a node."""
        self.free[:, node] += self.need(task)

    def counts_pods(self, tasks: Sequence[Task]) -> bool:
        """Return whether KAI counts pods in a domain: all request GPUs or none does, and so for every other resource.

        Processors and memory do not matter here. Where some request a resource and some do not, only sums are compared.
        """
        needs = np.array([self.need(task) for task in tasks]) > 0
        kinds = [row for name, row in self._row.items() if name not in (CPU, MEMORY) and not _unseen(name)]
        return bool((needs[:, kinds] == needs[0, kinds]).all())

    def pods_per_node(self, tasks: Sequence[Task]) -> Ints:
        """Return how many pods of a group KAI assumes to fit on each node.

        Each pod counts as the largest: the maximum of each resource that any pod requests, even if no pod requests all
        of that. This is why a group of mixed sizes can be refused although it fits. Node eligibility does not matter
        yet: a cordoned or tainted node counts too.
        """
        largest = np.max([self.need(task) for task in tasks], axis=0)
        rows = np.array([row for row in np.flatnonzero(largest) if not _unseen(self.resources[row])])
        if rows.tolist() == [self._row[PODS]]:
            return np.full(len(self.names), len(tasks), dtype=np.int64)
        counts: Ints = (self.free[rows] // largest[rows, None]).min(axis=0)
        counts[(self.free[self._always] < 0).any(axis=0)] = 0
        return np.maximum(counts, 0)

    def asks_nothing(self, tasks: Sequence[Task]) -> bool:
        """Return whether the tasks request no resources."""
        return not any(task.shape.requests for task in tasks)

    def shares(self, tasks: Sequence[Task], nodes: Nodes, domains: Ints, count: int) -> Floats:
        """Return the share of its scarcest resource that a group would take in each of `count` domains.

        `domains` is the domain of each node. A share above 1 does not fit. Processors count in whole ones and storage
        in thousands of bytes, rounded up.
        """
        wanted = np.sum([self.need(task) for task in tasks], axis=0)
        shares = np.zeros(count)
        for row in np.flatnonzero(wanted).tolist():
            name = self.resources[row]
            if name == PODS or _unseen(name):
                continue
            unit = 1000 if name in (CPU, STORAGE) else 1
            free = np.bincount(domains, weights=self.free[row, nodes], minlength=count)
            ask, has = -(-int(wanted[row]) // unit), np.ceil(free / unit)
            missing = np.inf if name == GPU else _MISSING
            share = np.divide(ask, has, out=np.full(count, missing), where=has != 0)
            shares = np.maximum(shares, share)
        return shares

    def best_node(self, task: Task, nodes: Nodes, bonus: Floats | None) -> int | None:
        """Return the node among `nodes` on which KAI places a task, or None when none is feasible.

        The bonus of a preferred level comes first. Then a pod without GPUs goes to nodes without; then the node with
        the least free GPUs, or processors where the pod requests no GPUs, is filled; then the name decides.
        """
        need = self.need(task)
        rows = np.union1d(np.flatnonzero(need), self._always)
        good = self._may_take(task.shape)[nodes] & (self.free[np.ix_(rows, nodes)] >= need[rows, None]).all(axis=0)
        if not good.any():
            return None
        scores = self._scores(nodes, plain=task.shape.amount(GPU) == 0)
        if bonus is not None:
            scores = scores + bonus[nodes]
        best = nodes[good & (scores == scores[good].max())]
        return int(best[np.argmin(self._turn[best])])

    def _scores(self, nodes: Nodes, *, plain: bool) -> Floats:
        total = self._cluster.allocatable[self._cluster.resource(CPU if plain else GPU)][nodes]
        free = self.free[self._row[CPU if plain else GPU]][nodes]
        having = free[total > 0]
        least, most = (int(having.min()), max(int(having.max()), 0)) if len(having) else (0, 0)
        dense = np.full(len(nodes), 0.0 if most == 0 else _DENSITY)
        if least != most != 0:
            dense = _DENSITY * (1 - (free - least) / (most - least))
        dense[total == 0] = 0.0
        if plain:
            dense[self._cluster.allocatable[self._cluster.resource(GPU)][nodes] <= 0] += _NO_GPUS
        return dense

    def _may_take(self, shape: Shape) -> Bools:
        found = self._masks.get(shape)
        if found is None:
            found = self._masks[shape] = eligible(shape, self._cluster, lift_transient=False) & self._usable
        return found


def _unseen(resource: str) -> bool:
    """Return whether KAI does not count a resource in domains, and checks it on each node only."""
    return resource == CHANNEL or counts_neighbours(resource)
