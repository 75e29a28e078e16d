"""The nodes and pods of a cluster that Coterie has read, as objects of a lab.

What is added is read back by Coterie as the same cluster. Owners of pods become labels where they are the name of a
workflow, and otherwise a ReplicaSet that nothing acts on: the garbage collector would delete a pod whose owner is not
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.sources import Snapshot
from coterie.sources.task_labels import GROUP, TASK, WORKFLOW
from coterie.topology.cluster import CPU, PODS, Cluster, Pod
from lab.api import Api, ApiError, Object
from lab.control_plane.computedomain import CLIQUE, resource_slice
from lab.errors import LabError
from lab.realnodes.image import IMAGE

if TYPE_CHECKING:
    from lab.cluster import Lab

# Holds a pod that the cluster file calls terminating where it is.
HOLD = "coterie.dev/lab-terminating"
_MIRROR = "kubernetes.io/config.mirror"
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def add(lab: Lab, cluster: Snapshot | Cluster) -> None:
    """Add all nodes of a cluster, and the pods that run on them; return when the pods run.

    The first nodes are real while the lab has real ones to give, except those that no kubelet can play: nodes that are
    not ready, and nodes with pods of a daemon or pods that are terminating.
    """
    whole = cluster.cluster if isinstance(cluster, Snapshot) else cluster
    api = lab.api
    played = {pod.node for pod in whole.pods if pod.daemon or pod.terminating}
    eligible = (index for index in range(len(whole)) if whole.ready[index] and whole.names[index] not in played)
    real = set(islice(eligible, lab.real_nodes_left))
    nodes = [node_object(whole, index) for index in range(len(whole)) if index not in real]
    # A real node has no plugin that would hand its devices out. KAI may take a device for taken as long as it runs, by
    # its name (docs/kai.md, P), so a node that is added again after a reset has others.
    named = [node["metadata"]["name"] for node in nodes if CLIQUE in node["metadata"]["labels"]]
    slices = [resource_slice(name, lab.resets) for name in named]
    try:
        api.each(api.create, [*nodes, *slices])
        if real:
            lab.real_nodes.add([node_object(whole, index) for index in sorted(real)])
        if whole.pods:
            _add_pods(lab, whole.pods)
    except ApiError as error:
        raise LabError(
            f"the API server refuses the cluster: {error}",
            "Names of nodes and pods are lower case letters, digits, - and . in Kubernetes.",
        ) from None


def node_object(cluster: Cluster, index: int) -> Object:
    """Return a node of a cluster as the API takes it."""
    name = cluster.names[index]
    offered = {
        resource: quantity(resource, int(amount))
        for resource, amount in zip(cluster.resources, cluster.allocatable[:, index], strict=True)
        if amount or resource == PODS
    }
    labels = {key: value for key in cluster.columns if (value := cluster.label(index, key)) is not None}
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in cluster.taint_sets[cluster.taint_set[index]]
    ]
    ready = bool(cluster.ready[index])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": bool(cluster.cordoned[index])},
        "status": {
            "allocatable": offered,
            "capacity": offered,
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": "KubeletReady" if ready else "KubeletNotReady",
                }
            ],
        },
    }


def pod_object(pod: Pod, owner: Object | None = None) -> Object:
    """Return a running pod of a cluster as the API takes it, with the object that owns it, if any."""
    namespace, name = _split(pod.name)
    labels = {}
    if pod.member:
        labels = {WORKFLOW: pod.member.workload, GROUP: pod.member.group, TASK: pod.member.task}
    elif owner is None and pod.owner not in ("", pod.name) and _LABEL_VALUE.fullmatch(pod.owner):
        labels = {WORKFLOW: pod.owner}
    asked = {resource: quantity(resource, amount) for resource, amount in pod.requests.items()}
    metadata: Object = {"name": name, "namespace": namespace, "labels": labels}
    if pod.daemon:
        metadata["annotations"] = {_MIRROR: "lab"}
    if pod.terminating:
        metadata["finalizers"] = [HOLD]
    if owner is not None:
        same = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata["ownerReferences"] = [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **same}
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": pod.node,
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": IMAGE,
                    "command": ["sleep", "2147483647"],
                    "resources": {"requests": asked, "limits": asked},
                }
            ],
        },
    }


def workspace(name: str, folder: Path) -> list[Object]:
    """Return a volume that is a folder of this machine, with the claim of the same name by which pods use it."""
    spec = {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **spec,
                "capacity": {"storage": "1Ti"},
                "hostPath": {"path": str(folder), "type": "Directory"},
                "claimRef": {"name": name, "namespace": "default"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {**spec, "volumeName": name, "resources": {"requests": {"storage": "1Ti"}}},
        },
    ]


def quantity(resource: str, amount: int) -> str:
    """Return an amount in Coterie's units as Kubernetes writes it."""
    return f"{amount}m" if resource == CPU else str(amount)


def _add_pods(lab: Lab, pods: Iterable[Pod]) -> None:
    api, pods = lab.api, list(pods)
    for namespace in sorted({_split(pod.name)[0] for pod in pods}):
        with suppress(ApiError):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    owners = _owners(api, pods)
    api.each(api.create, [pod_object(pod, owners.get(_owned_by(pod))) for pod in pods])
    api.each(lambda pod: api.delete("pods", *reversed(_split(pod.name))), [pod for pod in pods if pod.terminating])
    running = {pod.name for pod in pods if not pod.terminating}
    lab.wait(lambda: running <= _running(api), 60, "the pods of the cluster file run")


def _running(api: Api) -> set[str]:
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in api.objects("pods")
        if pod["status"].get("phase") == "Running"
    }


def _owners(api: Api, pods: Iterable[Pod]) -> Mapping[tuple[str, str], Object]:
    """Create the owners that cannot be told by a label."""
    wanted = sorted({_owned_by(pod) for pod in pods} - {("", "")})
    return dict(zip(wanted, api.each(lambda key: api.create(_replica_set(*key)), wanted), strict=True))


def _owned_by(pod: Pod) -> tuple[str, str]:
    """Return namespace and name of the object that stands for a pod's owner; empty when no object is needed."""
    namespace, name = _split(pod.name)
    above, slash, owner = pod.owner.partition("/")
    return (namespace, owner) if slash and above == namespace and owner != name and not pod.member else ("", "")


def _replica_set(namespace: str, name: str) -> Object:
    labels = {"coterie.dev/lab-owner": "true"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "lab"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def _split(name: str) -> tuple[str, str]:
    namespace, slash, rest = name.partition("/")
    return (namespace, rest) if slash else ("default", name)
