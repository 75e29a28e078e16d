"""Pods of Coterie's own tasks in the snapshot of a live cluster, which must not be counted beside what tasks hold."""

from __future__ import annotations

from collections.abc import Mapping

from coterie.backends.shared.names import label_value
from coterie.topology.cluster import Cluster, Member

# A task as the labels of its pod name it, and the node.
Slot = tuple[str, str, str, str]


def live_pods(cluster: Cluster) -> Mapping[Slot, int]:
    """Return the pods of a snapshot that are tasks of workflows; one that is ending is no longer its task's."""
    return {
        (pod.member.workload, pod.member.group, pod.member.task, pod.node): index
        for index, pod in enumerate(cluster.pods)
        if pod.member is not None and not pod.terminating
    }


def slot(member: Member, node: str) -> Slot:
    """Return how the pod of a task on a node is found among them."""
    return label_value(member.workload), label_value(member.group), label_value(member.task), node
