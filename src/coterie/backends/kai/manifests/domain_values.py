"""The domains of a task's node, which are known only when the scheduler has chosen it.

The service writes them into a ConfigMap as soon as pods are bound. A pod mounts the key of its own task, so that its
containers start when that is written, and finds the values in its environment. The ConfigMap is created empty before
the pods, because KAI does not schedule pods that name one which does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.pods import Work
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.task_environment import domain_variable
from coterie.sources.task_labels import ATTEMPT

VOLUME = "coterie-domains"
FOLDER = "/coterie/domains"


def with_domains(work: Work, scene: ManifestContext, group: str, task: str, attempt: int) -> Work:
    """Return the work of a task that finds the domains of its node in its environment."""
    levels = scene.pool.topology.levels
    if not levels:
        return work
    name = scene.domain_values(group, attempt)
    values = [
        (
            domain_variable(level.name),
            {"configMapKeyRef": {"name": name, "key": f"{task}.{level.name}", "optional": True}},
        )
        for level in levels
    ]
    volume = {"name": VOLUME, "configMap": {"name": name, "items": [{"key": task, "path": "node"}]}}
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    return replace(work, later=[*work.later, *values], volumes=[*work.volumes, volume], mounts=[*work.mounts, mount])


def domain_values(
    scene: ManifestContext, group: str, attempt: int, nodes: Mapping[str, tuple[str, Mapping[str, str]]]
) -> Manifest:
    """Return the ConfigMap of tasks, by their names, with the names and labels of their nodes."""
    data: dict[str, str] = {}
    for task, (node, labels) in nodes.items():
        data[task] = node
        for level in scene.pool.topology.levels:
            if value := labels.get(level.label):
                data[f"{task}.{level.name}"] = value
    name = scene.domain_values(group, attempt)
    found = scene.metadata(name, group)
    labels = {**found["labels"], ATTEMPT: str(attempt)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**found, "labels": labels}, "data": data}
