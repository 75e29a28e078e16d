"""The running tasks of a workload, by the labels of their pods: Coterie's or Grove's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coterie.backends.shared.names import label_value
from coterie.frontends.kubernetes.objects import DEFAULT_NAMESPACE
from coterie.gang.tree import Gang
from coterie.topology.cluster import Cluster, Pod


@dataclass(frozen=True, slots=True)
class RunningTasks:
    """A cluster with the running pods of one workload, as the nodes of tasks by group.

    `unsure` are the namespaces with such pods where none was named, and none was chosen.
    """

    cluster: Cluster
    groups: Mapping[str, Mapping[str, str]]
    unsure: tuple[str, ...] = ()

    @staticmethod
    def of(cluster: Cluster, names: Iterable[str], namespace: str = "") -> RunningTasks:
        """Look for a workload by the names that its pods may carry.

        Without a namespace it is the one in which such pods are, and of several the default one.
        """
        known = {label_value(name) for name in names}
        own = [pod for pod in cluster.pods if pod.member and not pod.terminating and pod.member.workload in known]
        # Pods of a cluster file have no namespace.
        spaces = sorted({_namespace(pod) for pod in own} - {""})
        if not namespace and len(spaces) > 1 and DEFAULT_NAMESPACE not in spaces:
            return RunningTasks(cluster, {}, tuple(spaces))
        meant = namespace or (spaces[0] if len(spaces) == 1 else DEFAULT_NAMESPACE)
        groups: dict[str, dict[str, str]] = {}
        for pod in own:
            if pod.member and _namespace(pod) in ("", meant):
                groups.setdefault(pod.member.group, {})[pod.member.task] = pod.node
        return RunningTasks(cluster, groups)

    def running(self, gang: Gang) -> dict[str, str]:
        """Return the nodes of the gang's running tasks."""
        nodes = self.groups.get(label_value(gang.name), {})
        found = ((task.name, nodes.get(label_value(task.name))) for task in gang.all_tasks())
        return {task: node for task, node in found if node is not None}


def _namespace(pod: Pod) -> str:
    space, slash, _ = pod.name.partition("/")
    return space if slash else ""
