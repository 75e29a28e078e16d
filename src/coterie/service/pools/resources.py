"""The capacity of each node, its holdings by workflows and others, and its pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from coterie.config.configuration import Pool
from coterie.inspection.labels import pool_nodes
from coterie.service.pools.usage import PoolUsage, with_pods
from coterie.topology.cluster import CPU, GPUS, MEMORY, STORAGE, Cluster, Ints, Taint

# The counted resources, with the size of one unit: cores are kept in thousandths, memory and storage in bytes.
UNITS = {
    "cpu": ((CPU,), 1000),
    "gpu": (GPUS, 1),
    "memory": ((MEMORY,), 1 << 30),
    "storage": ((STORAGE,), 1 << 30),
}

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node; amounts are whole cores, GPUs and GiB, and `pools` are those that select it, with their platforms."""

    name: str
    backend: str
    pools: Mapping[str, tuple[str, ...]]
    has: Amounts
    workflows: Amounts
    others: Amounts
    labels: Callable[[], Mapping[str, str]]
    taints: tuple[Taint, ...]
    ready: bool
    cordoned: bool

    @property
    def free_gpus(self) -> int:
        """The number of free GPUs, on a node that accepts work."""
        used = self.workflows["gpu"] + self.others["gpu"]
        return max(0, self.has["gpu"] - used) if self.ready and not self.cordoned else 0


def nodes_of(live: PoolUsage) -> Iterator[NodeUse]:
    """Yield every known node, by backend."""
    for backend, snapshot in live.catalog.clusters.items():
        cluster = with_pods(snapshot.cluster, live.pods.get(backend, ()))
        tasks = {pod.member for pod in live.pods.get(backend, ())}
        own = [index for index, pod in enumerate(cluster.pods) if pod.member is not None and pod.member in tasks]
        has = _amounts(cluster, cluster.allocatable)
        mine = _amounts(cluster, cluster.held(own), up=True)
        others = _amounts(cluster, cluster.held(set(range(len(cluster.pods))).difference(own)), up=True)
        members = _members(live, backend, cluster)
        for index, name in enumerate(cluster.names):
            yield NodeUse(
                name=name,
                backend=backend,
                pools={pool: platforms[name] for pool, platforms in members.items() if name in platforms},
                has=has[index],
                workflows=mine[index],
                others=others[index],
                labels=partial(_labels, cluster, index),
                taints=cluster.taint_sets[int(cluster.taint_set[index])],
                ready=bool(cluster.ready[index]),
                cordoned=bool(cluster.cordoned[index]),
            )


def _members(live: PoolUsage, backend: str, cluster: Cluster) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the nodes of each pool, with the platforms of that pool which select them."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, known in live.catalog.pools.items():
        if known.pool.backend == backend and not known.unusable:
            own = pool_nodes(cluster, known.pool)
            found[name] = {node: tuple(_platforms(known.pool, own, index)) for index, node in enumerate(own.names)}
    return found


def _platforms(pool: Pool, own: Cluster, index: int) -> Iterator[str]:
    for name, platform in pool.platforms.items():
        if all(own.label(index, key) == value for key, value in platform.node_selector):
            yield name


def whole_units(requests: Mapping[str, int]) -> dict[str, int]:
    """Return the requests of a task in whole cores, GPUs and GiB, rounded up."""
    return {word: -(-sum(requests.get(name, 0) for name in names) // unit) for word, (names, unit) in UNITS.items()}


def _labels(cluster: Cluster, node: int) -> dict[str, str]:
    return {key: value for key in cluster.columns if (value := cluster.label(node, key)) is not None}


def _amounts(cluster: Cluster, table: Ints, *, up: bool = False) -> list[Amounts]:
    """Return amounts by node in whole units: allocatable is rounded down, and holdings up."""
    columns: list[list[int]] = []
    for names, unit in UNITS.values():
        amounts = table[[row for row, name in enumerate(cluster.resources) if name in names]].sum(axis=0)
        columns.append(((amounts + (unit - 1 if up else 0)) // unit).tolist())
    return [dict(zip(UNITS, each, strict=True)) for each in zip(*columns, strict=True)]
