"""Causes of separation as rows of capacity: requested by tasks, offered by nodes, and held by running pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.gang.edits import mapped
from coterie.gang.tree import Gang, Task
from coterie.topology.cluster import Cluster, Ints, Pod
from coterie.topology.pod_affinity import PodTraits


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A running pod, with its index among the pods of the cluster; None for one that is only planned."""

    traits: PodTraits
    node: int
    owner: str
    pod: int | None = None
    daemon: bool = False


@dataclass(frozen=True, slots=True)
class SeparationRow:
    """One cause of separation: the amount on nodes, the amount of tasks, and the amounts held by running pods."""

    name: str
    offered: Ints
    asked: Mapping[str, int]
    held: Sequence[tuple[Neighbour, Ints]] = ()


def with_requests(gangs: Sequence[Gang], rows: Sequence[SeparationRow]) -> tuple[Gang, ...]:
    """Return gangs whose tasks request the amounts of the rows; equal requests keep one shape."""
    asked: dict[str, list[tuple[str, int]]] = {}
    for row in rows:
        for name, amount in row.asked.items():
            asked.setdefault(name, []).append((row.name, amount))
    shapes: dict[tuple[object, tuple[tuple[str, int], ...]], Task] = {}

    def changed(task: Task) -> Task:
        more = tuple(sorted(asked.get(task.name, ())))
        if not more:
            return task
        first = shapes.get((task.shape, more))
        if first is None:
            requests = tuple(sorted((*task.shape.requests, *more)))
            first = shapes[task.shape, more] = replace(task, shape=replace(task.shape, requests=requests))
        return replace(task, shape=first.shape)

    return tuple(mapped(gang, changed) for gang in gangs)


def with_capacity(cluster: Cluster, rows: Sequence[SeparationRow]) -> Cluster:
    """Return the cluster with a row of capacity per cause; a pod is on every node of a domain that it blocks."""
    if not rows:
        return cluster
    more: list[tuple[Pod, int, int, int]] = []
    own = np.zeros((len(rows), len(cluster.pods)), dtype=np.int64)
    for number, row in enumerate(rows):
        for each, nodes in row.held:
            amount = int(row.offered[each.node]) if len(row.offered) else 0
            for node in nodes.tolist():
                if each.pod is not None and node == each.node:
                    own[number, each.pod] = amount
                else:
                    shade = Pod(each.owner, cluster.names[node], {}, each.owner, each.daemon)
                    more.append((shade, node, number, amount))
    extra = np.zeros((len(cluster.resources) + len(rows), len(more)), dtype=np.int64)
    for index, (_, _, number, amount) in enumerate(more):
        extra[len(cluster.resources) + number, index] = amount
    return replace(
        cluster,
        resources=(*cluster.resources, *(row.name for row in rows)),
        allocatable=np.concatenate([cluster.allocatable, *([row.offered] for row in rows)]),
        pods=(*cluster.pods, *(shade for shade, *_ in more)),
        pod_node=np.concatenate([cluster.pod_node, np.array([node for _, node, _, _ in more], dtype=np.int32)]),
        pod_requests=np.concatenate([np.concatenate([cluster.pod_requests, own]), extra], axis=1),
    )


def padded(taken: Ints | None, cluster: Cluster) -> Ints | None:
    """Return amounts as [resource, node], zero in the rows that a cluster has beyond them."""
    if taken is None or len(taken) == len(cluster.resources):
        return taken
    more = np.zeros((len(cluster.resources) - len(taken), len(cluster)), dtype=np.int64)
    return np.concatenate([taken, more])
