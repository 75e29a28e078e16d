"""The pods, PodGroups and nodes of a backend, kept up to date by watches.

Watch threads only note which objects have changed in what the driver reads: an update that changes nothing of that,
such as a heartbeat, wakes nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack

from coterie.backends.kai.driver.objects import GangPodGroup, TaskPod
from coterie.backends.kai.manifests.metadata import STORE
from coterie.errors import CoterieError, Place
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.kinds import NODE, POD, POD_GROUP
from coterie.kube.reads import ObjectQuery
from coterie.kube.watch_thread import WatchThread
from coterie.sources.assemble import assemble
from coterie.sources.kubernetes_objects import BareNode, node_of
from coterie.topology.cluster import Cluster

# How long the first reading of all objects may take.
_FIRST_S = 20.0


class BackendWatches:
    """The objects of one store in one namespace, and all nodes; `wake` is set when something has changed."""

    def __init__(self, api: Api, namespace: str, store: str, wake: threading.Event) -> None:
        self._namespace, self._wake = namespace, wake
        self._lock = threading.Lock()
        self._pods: dict[str, TaskPod] = {}
        self._groups: dict[str, GangPodGroup] = {}
        self._changed_pods: dict[str, TaskPod | None] = {}
        self._changed_groups: set[str] = set()
        self._nodes: dict[str, BareNode] = {}
        self._cluster: Cluster | None = None
        self._nodes_changed = True
        own = f"{STORE}={store}"
        self._watched = (
            WatchThread(api, ObjectQuery(POD_GROUP, namespace, own), GangPodGroup, on_change=self._group),
            WatchThread(api, ObjectQuery(POD, namespace, own), TaskPod, on_change=self._pod),
            WatchThread(api, ObjectQuery(NODE), BareNode, on_change=self._node),
        )
        with ExitStack() as stack:
            for each in self._watched:
                stack.enter_context(each)
            for each in self._watched:
                each.wait_known(_FIRST_S)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Stop all watches."""
        self._stack.close()

    @property
    def error(self) -> CoterieError | None:
        """The failure that currently keeps a watch from being up to date, if any."""
        for each in self._watched:
            each.entries()  # raises the error that ended it
        return next((each.error for each in self._watched if each.error is not None), None)

    def pod(self, name: str) -> TaskPod | None:
        """Return a pod as it is known now."""
        with self._lock:
            return self._pods.get(name)

    def pods(self) -> list[TaskPod]:
        """Return all pods of the store."""
        with self._lock:
            return list(self._pods.values())

    def group(self, name: str) -> GangPodGroup | None:
        """Return a PodGroup as it is known now."""
        with self._lock:
            return self._groups.get(name)

    def groups(self) -> list[GangPodGroup]:
        """Return all PodGroups of the store."""
        with self._lock:
            return list(self._groups.values())

    def take_changed_pods(self) -> dict[str, TaskPod | None]:
        """Return the names of pods that changed since the last call, with the last state of those that are gone."""
        with self._lock:
            found, self._changed_pods = self._changed_pods, {}
            return found

    def take_changed_groups(self) -> set[str]:
        """Return the names of PodGroups that changed since the last call."""
        with self._lock:
            found, self._changed_groups = self._changed_groups, set()
            return found

    def failed_node(self, pod: str) -> str:
        """Return the node of a pod if it is gone, or not ready; otherwise an empty string."""
        found, nodes = self.pod(pod), self.cluster()
        if found is None or not found.spec.node_name or nodes is None:
            return ""
        at = nodes.position.get(found.spec.node_name)
        return found.spec.node_name if at is None or not bool(nodes.ready[at]) else ""

    def labels(self, node: str) -> Mapping[str, str]:
        """Return the labels of a node, none for one that is not known."""
        with self._lock:
            found = self._nodes.get(node)
        return (found.metadata.labels or {}) if found is not None else {}

    def cluster(self) -> Cluster | None:
        """Return the nodes as they are now, without pods; None where there is none."""
        with self._lock:
            changed, self._nodes_changed = self._nodes_changed, False
            found = list(self._nodes.values()) if changed else []
        if changed:
            nodes = [node_of(each) for each in found]
            self._cluster = assemble(nodes, (), Place("nodes")).cluster if nodes else None
        return self._cluster

    def _pod(self, change: CacheChange[TaskPod]) -> None:
        name, pod = change.entry.meta.name, change.entry.value
        pod.metadata.managed_fields = None
        with self._lock:
            if change.did is ChangeType.DELETED:
                # The deletion itself may have the time at which it was requested, which no update before it had.
                self._pods.pop(name, None)
                self._changed_pods[name] = pod
            elif self._pods.get(name) == pod:
                return
            else:
                self._pods[name] = pod
                self._changed_pods[name] = None
        self._wake.set()

    def _group(self, change: CacheChange[GangPodGroup]) -> None:
        name, group = change.entry.meta.name, change.entry.value
        group.metadata.managed_fields = None
        with self._lock:
            if change.did is ChangeType.DELETED:
                self._groups.pop(name, None)
            elif self._groups.get(name) == group:
                return
            else:
                self._groups[name] = group
            self._changed_groups.add(name)
        self._wake.set()

    def _node(self, change: CacheChange[BareNode]) -> None:
        name, node = change.entry.meta.name, change.entry.value
        with self._lock:
            if change.did is ChangeType.DELETED:
                self._nodes.pop(name, None)
            elif self._nodes.get(name) == node:
                return
            else:
                self._nodes[name] = node
            self._nodes_changed = True
