"""The pod that removes the folder of a deleted workflow from a workspace, made from the pod of one of its tasks.

It can mount the volume, pull its image and is admitted where that pod was. Nothing else of the task is in it.
With the image of a task, which is not to be trusted, it sees the folder of that workflow alone and empties it. With the
image that the configuration names, it sees the folder above and removes the workflow's folder itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.pods import toleration
from coterie.backends.kai.manifests.workspace import VOLUME, service_folder
from coterie.backends.shared.manifest_text import Manifest
from coterie.config.configuration import NO_PLATFORM, Pool, Workspace
from coterie.config.pod_template import TASK_CONTAINER
from coterie.gang.tree import Shape
from coterie.sources.task_labels import ATTEMPT, GROUP, TASK, WORKFLOW

_MOUNT = "/coterie/workspace"
# Folders that tasks have made read-only are made writable; those of others cannot be, and the last command says so.
# Some programs cannot remove a tree with paths of more than 4,096 bytes, so its lower parts are moved up.
_SCRIPT = r"""try() { rm -rf TARGETS; }
try 2>/dev/null && exit
find "$0" -type d -exec chmod u+rwx {} \; 2>/dev/null
while find "$0" -mindepth 12 -maxdepth 12 -type d \
  -exec sh -c 'mv "$1" "$0/.$$" && echo moved' "$0" {} \; 2>/dev/null | read -r moved
do try 2>/dev/null && exit
done
try"""
_CONTENTS = _SCRIPT.replace("TARGETS", '"$0"/* "$0"/.[!.]* "$0"/..?*')
_WHOLE = _SCRIPT.replace("TARGETS", '"$0"')
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
    """Return the pod that empties a workflow's folder, without a queue; `pod` is that of one of its tasks."""
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
                    "command": ["sh", "-c", _CONTENTS, _MOUNT],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    "volumeMounts": [_mount(f"{service_folder(scene, workspace.folder)}/{scene.workflow_id}")],
                }
            ],
            "volumes": [{"name": VOLUME, "persistentVolumeClaim": {"claimName": workspace.claim}}],
        },
    }


def removal_objects(pod: Manifest, queue: Mapping[str, str], image: str) -> tuple[Manifest, Manifest]:
    """Return the PodGroup and the pod to be created; `queue` has the labels of the queue.

    With an `image`, which is that of an administrator, the pod removes the folder itself.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    (container,) = spec["containers"]
    labels = {**metadata["labels"], **queue}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {**metadata, "labels": labels, "annotations": {}},
        "spec": {"queue": next(iter(queue.values())), "minMember": 1},
    }
    chosen = _with_image(container, image) if image else container
    return group, {**pod, "metadata": {**metadata, "labels": labels}, "spec": {**spec, "containers": [chosen]}}


def on_current_nodes(pod: Manifest, pool: Pool, platform: str) -> Manifest:
    """Return a pod with the node selector and the tolerations of its pool and platform as they are now.

    The taints that it tolerates already are still tolerated. A platform that is no more leaves the pod as it is.
    """
    if platform and platform not in pool.platforms:
        return pod
    shape = pool.admitted(Shape(), pool.platforms.get(platform, NO_PLATFORM))
    known = pod["spec"].get("tolerations", [])
    further = [each for each in map(toleration, shape.tolerations) if each not in known]
    found = {"nodeSelector": dict(shape.selector), "tolerations": [*known, *further]}
    return {**pod, "spec": {**pod["spec"], **found}}


def platform_of(pod: Manifest, pool: Pool) -> str:
    """Return the platform of its pool on whose nodes a pod runs, empty for those of the whole pool."""
    selector = pod["spec"].get("nodeSelector", {})
    found = (name for name, each in pool.platforms.items() if dict(pool.admitted(Shape(), each).selector) == selector)
    return "" if selector == dict(pool.node_selector) else next(found, "")


def removed_folder(pod: Manifest) -> tuple[str, str, str]:
    """Return the workflow, the claim and the folder of a recorded pod."""
    (container,), (volume,) = pod["spec"]["containers"], pod["spec"]["volumes"]
    (mount,) = container["volumeMounts"]
    claim = str(volume["persistentVolumeClaim"]["claimName"])
    return str(pod["metadata"]["labels"][WORKFLOW]), claim, str(mount["subPath"])


def _with_image(container: Manifest, image: str) -> Manifest:
    (mount,) = container["volumeMounts"]
    parent, _, name = mount["subPath"].rpartition("/")
    command = ["sh", "-c", _WHOLE, f"{_MOUNT}/{name}"]
    return {**container, "image": image, "command": command, "volumeMounts": [_mount(parent)]}


def _mount(folder: str) -> Manifest:
    return {"name": VOLUME, "mountPath": _MOUNT, "subPath": folder}


def _chosen(fields: Mapping[str, Any], names: tuple[str, ...]) -> Manifest:
    return {name: fields[name] for name in names if name in fields}
