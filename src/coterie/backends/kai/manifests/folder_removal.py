"""The pod that removes the folder of a deleted workflow from a workspace, made from the pod of one of its tasks.

It can mount the volume, pull its image and is admitted where that pod was. Nothing else of the task is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.workspace import VOLUME, service_folder
from coterie.backends.shared.manifest_text import Manifest
from coterie.config.configuration import Workspace
from coterie.config.pod_template import TASK_CONTAINER
from coterie.sources.task_labels import ATTEMPT, GROUP, TASK, WORKFLOW

_MOUNT = "/coterie/workspace"
# Folders that tasks have made read-only are made writable; those of others cannot be, and the last command says so.
_SCRIPT = 'rm -rf "$0" 2>/dev/null || { find "$0" -type d -exec chmod u+rwx {} \\; 2>/dev/null; rm -rf "$0"; }'
# A volume that does not answer must not keep the pod for ever.
_DEADLINE_S = 3600
_SPEC = (
    "automountServiceAccountToken",
    "hostUsers",
    "imagePullSecrets",
    "nodeSelector",
    "runtimeClassName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
)
_CONTAINER = ("image", "imagePullPolicy", "securityContext", "terminationMessagePolicy")
_OF_TASKS = (GROUP, TASK, ATTEMPT)
_OF_SCHEDULER = ("kai.scheduler/", "runai/")
_POD_GROUP = "pod-group-name"


def removal_pod(scene: ManifestContext, workspace: Workspace, pod: Manifest) -> Manifest:
    """Return the pod that removes a workflow's folder, without a queue; `pod` is that of one of its tasks."""
    parent = service_folder(scene, workspace.folder)
    name = scene.folder_removal(workspace.claim, workspace.folder)
    metadata, spec = pod["metadata"], pod["spec"]
    container = next(each for each in spec["containers"] if each["name"] == TASK_CONTAINER)
    labels = {
        key: value
        for key, value in metadata["labels"].items()
        if key not in _OF_TASKS and not key.startswith(_OF_SCHEDULER)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": scene.namespace,
            "labels": labels,
            "annotations": {**metadata["annotations"], _POD_GROUP: name},
        },
        "spec": {
            **_chosen(spec, _SPEC),
            "schedulerName": spec["schedulerName"],
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _DEADLINE_S,
            "containers": [
                {
                    "name": TASK_CONTAINER,
                    **_chosen(container, _CONTAINER),
                    "command": ["sh", "-c", _SCRIPT, f"{_MOUNT}/{scene.workflow_id}"],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    "volumeMounts": [{"name": VOLUME, "mountPath": _MOUNT, "subPath": parent}],
                }
            ],
            "volumes": [{"name": VOLUME, "persistentVolumeClaim": {"claimName": workspace.claim}}],
        },
    }


def removal_objects(pod: Manifest, queue: Mapping[str, str], image: str) -> tuple[Manifest, Manifest]:
    """Return the PodGroup and the pod to be created; `queue` has the labels of the queue, `image` may be empty."""
    metadata, spec = pod["metadata"], pod["spec"]
    (container,) = spec["containers"]
    labels = {**metadata["labels"], **queue}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {**metadata, "labels": labels, "annotations": {}},
        "spec": {"queue": next(iter(queue.values())), "minMember": 1},
    }
    chosen = {**container, "image": image} if image else container
    return group, {**pod, "metadata": {**metadata, "labels": labels}, "spec": {**spec, "containers": [chosen]}}


def removed_folder(pod: Manifest) -> tuple[str, str, str]:
    """Return the workflow, the claim and the folder of a pod that removes one."""
    (container,), (volume,) = pod["spec"]["containers"], pod["spec"]["volumes"]
    (mount,) = container["volumeMounts"]
    name = str(container["command"][-1]).rpartition("/")[2]
    claim = str(volume["persistentVolumeClaim"]["claimName"])
    return str(pod["metadata"]["labels"][WORKFLOW]), claim, f"{mount['subPath']}/{name}"


def _chosen(fields: Mapping[str, Any], names: tuple[str, ...]) -> Manifest:
    return {name: fields[name] for name in names if name in fields}
