"""Pods of Coterie's own tasks in the snapshot of a live cluster, which must not count besides their holdings."""

from __future__ import annotations

from collections.abc import Mapping

from coterie.backends.shared.names import label_value
from coterie.topology.cluster import Cluster, Member

# The task that a pod's labels name, and the node.
Slot = tuple[str, str, str, str]


def live_pods(cluster: Cluster) -> Mapping[Slot, int]:
    """Return the pods of a snapshot that are tasks of workflows; a terminating one no longer belongs to its task."""
    return {
        (pod.member.workload, pod.member.group, pod.member.task, pod.node): index
        for index, pod in enumerate(cluster.pods)
        if pod.member is not None and not pod.terminating
    }


def slot(member: Member, node: str) -> Slot:
    """Return the key of a task's pod on a node."""
    return label_value(member.workload), label_value(member.group), label_value(member.task), node
