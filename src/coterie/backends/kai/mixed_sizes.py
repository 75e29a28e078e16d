"""Tasks of different sizes under one constraint, written so that KAI does not refuse them although they fit.

KAI counts how many pods a domain holds by taking each for the largest, unless some of the pods request a resource and
others do not: then it compares sums, and tries nodes. So where sizes differ, one pod requests a very small amount of
ephemeral storage. That has no other effect and excludes no node, because it is done only where all nodes report
storage.

KAI also takes pods of a group in any order, unless a label orders them. Needed tasks come before optional ones, and the
large before the small, which are easier to place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from coterie.backends.kai.pod_group import PodGroupPart, pod_group_of
from coterie.errors import Notice
from coterie.gang.edits import mapped
from coterie.gang.tree import Gang, Shape, Task
from coterie.placement.eligibility import eligible
from coterie.topology.cluster import CPU, GPU, MEMORY, STORAGE, Cluster
from coterie.topology.levels import Topology

# The label by which KAI orders the pods of a group, the highest first.
PRIORITY = "kai.scheduler/task-priority"

_LITTLE = 1 << 10


@dataclass(frozen=True, slots=True)
class Mixed:
    """A gang as it is written for KAI, and its tasks with a storage request that their users did not write."""

    gang: Gang
    storing: tuple[str, ...] = ()

    @property
    def notice(self) -> Notice | None:
        """The notice for the user, if anything was added."""
        if not self.storing:
            return None
        one = len(self.storing) == 1
        who = f'task "{self.storing[0]}"' if one else f"{len(self.storing)} tasks"
        message = (
            f'{who} of group "{self.gang.name}" {"gets" if one else "get"} a request for 1Ki of ephemeral-storage: '
            "tasks of different sizes share a domain, and without it KAI would count each as the largest"
        )
        return Notice("StorageRequested", message)


def mix(gang: Gang, topology: Topology, cluster: Cluster | None) -> Mixed:
    """Return the gang with storage requests where they help, as far as the nodes of a known cluster have storage."""
    if cluster is None or cluster.resource(STORAGE) < 0:
        return Mixed(gang)
    chosen: dict[str, None] = {}
    # Finest parts first: a difference between the pods of a part also holds for the parts around it.
    for part, _ in reversed(list(pod_group_of(gang, topology).walk())):
        if part.constraint and counted_by_largest(part) and not any(task.name in chosen for task in part.all_tasks()):
            first = min(part.all_tasks(), key=pod_order)
            if not first.shape.amount(STORAGE) and _stored_everywhere(first.shape, cluster):
                chosen[first.name] = None
    if not chosen:
        return Mixed(gang)

    def storing(task: Task) -> Task:
        if task.name not in chosen:
            return task
        requests = tuple(sorted((*task.shape.requests, (STORAGE, _LITTLE))))
        return replace(task, shape=replace(task.shape, requests=requests))

    return Mixed(mapped(gang, storing), tuple(task.name for task in gang.all_tasks() if task.name in chosen))


def counted_by_largest(part: PodGroupPart) -> bool:
    """Return whether tasks differ that KAI counts by the largest: those of which all or none use GPUs and the like."""
    requests = {task.shape.requests for task in part.all_tasks()}
    kinds = {frozenset(name for name, _ in found) - {CPU, MEMORY} for found in requests}
    return len(requests) > 1 and len(kinds) == 1


def pod_order(task: Task) -> tuple[int, ...]:
    """Return the sort key of pods of one group: the order in which KAI is to take them."""
    return (not task.needed, *(-task.shape.amount(name) for name in (GPU, CPU, MEMORY)))


def priorities(tasks: Iterable[Task]) -> Mapping[str, int]:
    """Return the priority of each task among those of its gang; none where all are alike."""
    listed = list(tasks)
    orders = sorted({pod_order(task) for task in listed}, reverse=True)
    return {task.name: orders.index(pod_order(task)) for task in listed} if len(orders) > 1 else {}


def _stored_everywhere(shape: Shape, cluster: Cluster) -> bool:
    """Return whether all eligible nodes that are large enough for a shape report storage."""
    able = eligible(shape, cluster, lift_transient=True)
    for name, amount in shape.requests:
        able = able & (cluster.allocatable[cluster.resource(name)] >= amount)
    return bool((cluster.allocatable[cluster.resource(STORAGE)][able] >= _LITTLE).all())
