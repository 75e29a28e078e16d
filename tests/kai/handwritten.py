"""Objects for KAI as users write them by hand, the same requests as workflows, and the outcomes of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from lab.api import Object
from lab.cluster import Lab
from lab.nodes import add

from coterie.sources.task_labels import TASK
from coterie.topology.cluster import CPU, GPU, PODS, STORAGE, Cluster, Node
from tests.cli.command import Done, call
from tests.planning.builders import drawn
from tests.scenarios.sketch import LABELS, Drawing

LEVELS = "levels"
QUEUE = "queue"
_SENTINEL = Node("sentinel", {"coterie.dev/sentinel": "true"}, {CPU: 64_000, PODS: 110})
_RESOURCE = "resource.k8s.io"


@dataclass
class DrawnLab:
    """A lab with the nodes of a drawing, a queue, and a topology with the drawing's levels."""

    lab: Lab
    folder: Path
    drawing: Drawing
    nvlink: bool = False
    _sentinels: int = field(default=0, init=False)

    def pods(self, namespace: str = "") -> dict[str, Object]:
        """Return all pods of one's own by name, or by task for those that Coterie wrote."""
        found = {}
        for pod in self.lab.objects("pods", namespace):
            meta = pod["metadata"]
            if meta["name"].startswith("sentinel") or "@" in meta["name"]:
                continue
            found[meta.get("labels", {}).get(TASK, meta["name"])] = pod
        return found

    def nodes(self, namespace: str = "") -> dict[str, str]:
        """Return the nodes of all pods that have one."""
        pods = self.pods(namespace)
        return {name: pod["spec"]["nodeName"] for name, pod in pods.items() if "nodeName" in pod["spec"]}

    def settle(self) -> dict[str, str]:
        """Wait until KAI has looked at all that is there, and return where it put pods."""
        # What it chose in the round of the first pod is chosen when it comes to the second.
        for _ in range(2):
            self._pass()
        self.lab.wait(lambda: not self._chosen_only(), 30, "all chosen pods are bound")
        return self.nodes()

    def placed(self, count: int) -> dict[str, str]:
        """Wait until so many pods have a node, and return their nodes."""
        self.lab.wait(lambda: len(self.nodes()) == count, 30, f"{count} pods are bound")
        return self.nodes()

    def clear(self) -> None:
        """Delete pods and PodGroups of one's own, and wait until they are gone."""
        for kind in ("podgroups.scheduling.run.ai", "pods", "bindrequests", "computedomains"):
            for found in self.lab.objects(kind):
                meta = found["metadata"]
                if kind != "pods" or found["spec"].get("schedulerName") == "kai-scheduler":
                    self.lab.api.delete(kind, meta["name"], meta["namespace"], grace=0)
        self.lab.wait(lambda: not self.pods(), 30, "the pods are gone")

    def remove(self, name: str) -> None:
        """Delete one pod of one's own, and wait until it is gone."""
        meta = self.pods()[name]["metadata"]
        self.lab.api.delete("pod", meta["name"], meta["namespace"], grace=0)
        self.lab.wait(lambda: name not in self.pods(), 20, f"{name} is gone")

    def says(self, name: str, words: str) -> None:
        """Wait until KAI says some words about a PodGroup: it writes them some time after its round."""
        self.lab.wait(lambda: words in self.said(name), 30, f'KAI says "{words}" about {name}')

    def said(self, name: str, namespace: str = "default") -> str:
        """Return what KAI has said so far about a PodGroup."""
        group = self.lab.get("podgroups.scheduling.run.ai", name, namespace) or {}
        found = group.get("status", {}).get("schedulingConditions") or ()
        return " ".join(condition.get("message", "") for condition in found)

    def domains(self, level: str, tasks: Mapping[str, str]) -> list[str]:
        """Return the domains at a level in which pods are."""
        label = LABELS[level]
        return sorted({self.drawing.nodes[node].labels[label] for node in tasks.values()})

    def render(self, workflow: Path, *more: str) -> Done:
        """Apply what `coterie render` writes for a workflow on this cluster, and return what it said."""
        done = self.call("render", workflow, *more)
        assert done.code == 0, done.err
        self.lab.apply(done.out)
        return done

    def plan(self, workflow: Path, *more: str) -> Any:
        """Return what `coterie plan` says of a workflow on this cluster, as JSON."""
        return json.loads(self.call("plan", workflow, "--fresh", "-o", "json", *more).out)

    def call(self, command: str, workflow: Path, *more: str) -> Done:
        """Run a command of `coterie` for a workflow on the cluster as it is now."""
        kinds = f"nodes,pods,resourceclaims.{_RESOURCE},resourceslices.{_RESOURCE}"
        snapshot = self.folder / "snapshot.json"
        found = json.loads(self.lab.kubectl("get", kinds, "-A", "-o", "json"))
        found["items"] = [item for item in found["items"] if not item["metadata"]["name"].startswith("sentinel")]
        snapshot.write_text(json.dumps(found), encoding="utf-8")
        config = self.folder / "coterie.yaml"
        keys = [{"key": level.name, "label": level.label} for level in self.drawing.topology.levels]
        pool = {"topology_keys": keys, "nvlink": self.nvlink}
        backend = {"scheduler": "kai", "namespace": "default"}
        config.write_text(json.dumps({"backends": {"b": backend}, "pools": {"pool": pool}}), encoding="utf-8")
        return call(command, workflow, "--cluster", snapshot, "--config", config, *more)

    def workflow(self, tasks: Mapping[str, str], name: str = "train", labels: Mapping[str, str] | None = None) -> Path:
        """Write a workflow of one group; a task is its GPUs and requirements: `4 zone=all rack=x clique~y`.

        With `=` a level is required, with `~` preferred.
        """
        resources = {task: _resource(text) for task, text in tasks.items()}
        listed = [
            {"name": task, "image": "i", "command": ["run"], "resource": task, "lead": number == 0}
            for number, task in enumerate(tasks)
        ]
        spec = {"name": name, "labels": dict(labels or {}), "groups": [{"name": "g", "tasks": listed}]}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"workflow": spec, "resources": resources}, sort_keys=False), encoding="utf-8")
        return path

    def _pass(self) -> None:
        name = f"sentinel-{self._sentinels}"
        self._sentinels += 1
        alone = {"nodeSelector": dict(_SENTINEL.labels)}
        self.lab.apply([pod_group(name, topology=""), pod(name, name, 0, spec=alone)])
        self.lab.wait(lambda: "nodeName" in (self.lab.get("pod", name) or {"spec": {}})["spec"], 60, f"{name} is bound")

    def _chosen_only(self) -> set[str]:
        waiting = {pod["metadata"]["name"] for pod in self.lab.objects("pods") if "nodeName" not in pod["spec"]}
        return waiting & {request["spec"]["podName"] for request in self.lab.objects("bindrequests")}


def stage(lab: Lab, folder: Path, drawing: str, *, storage: bool = False, nvlink: bool = False) -> DrawnLab:
    """Set a stage; with `storage`, nodes report ephemeral storage as kubelets do."""
    found = drawn(drawing)
    if storage:
        found.nodes = {
            name: replace(node, allocatable={**node.allocatable, STORAGE: 100 << 30})
            for name, node in found.nodes.items()
        }
    pods = [replace(pod, name=f"default/{pod.name.replace('@', '-on-')}") for pod in found.pods]
    add(lab, Cluster.of([*found.nodes.values(), _SENTINEL], pods))
    lab.queue(QUEUE)
    if found.topology.levels:
        lab.apply(topology(LEVELS, *found.topology.names))
    return DrawnLab(lab, folder, found, nvlink)


def topology(name: str, *levels: str) -> Object:
    """Return a topology with these levels."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": LABELS[level]} for level in levels]},
    }


def constraint(required: str = "", preferred: str = "", topology: str = LEVELS) -> Object:
    """Return a topology constraint, or nothing where there is none."""
    found = {
        "topology": topology,
        "requiredTopologyLevel": LABELS.get(required, required),
        "preferredTopologyLevel": LABELS.get(preferred, preferred),
    }
    return (
        {"topologyConstraint": {key: value for key, value in found.items() if value}} if required or preferred else {}
    )


def subgroup(name: str, members: int | None, *, required: str = "", parent: str = "") -> Object:
    """Return a subgroup of a PodGroup."""
    return {
        "name": name,
        **({"parent": parent} if parent else {}),
        **({} if members is None else {"minMember": members}),
        **constraint(required),
    }


def pod_group(
    name: str,
    members: int = 1,
    *,
    required: str = "",
    preferred: str = "",
    topology: str = LEVELS,
    subgroups: Sequence[Object] = (),
    namespace: str = "default",
) -> Object:
    """Return a PodGroup."""
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "queue": QUEUE,
            "minMember": members,
            **constraint(required, preferred, topology),
            **({"subGroups": list(subgroups)} if subgroups else {}),
        },
    }


def pod(
    name: str,
    group: str,
    gpus: int,
    *,
    subgroup: str = "",
    namespace: str = "default",
    storage: str = "",
    priority: int | None = None,
    spec: Object | None = None,
) -> Object:
    """Return a pod of a PodGroup."""
    asked = {GPU: str(gpus)} if gpus else {CPU: "1"}
    requests = {**asked, **({STORAGE: storage} if storage else {})}
    labels = {"kai.scheduler/queue": QUEUE}
    if subgroup:
        labels["kai.scheduler/subgroup-name"] = subgroup
    if priority is not None:
        labels["kai.scheduler/task-priority"] = str(priority)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {"pod-group-name": group, "kai.scheduler/skip-podgrouper": "true"},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": asked}}],
            **(spec or {}),
        },
    }


def pods(group: str, sizes: Sequence[int], *, subgroup: str = "", **more: Any) -> list[Object]:
    """Return one pod for each number of GPUs."""
    stem = f"{group}-{subgroup}" if subgroup else group
    return [pod(f"{stem}-{index}", group, gpus, subgroup=subgroup, **more) for index, gpus in enumerate(sizes)]


def warned(plan: Any) -> dict[str, str]:
    """Return the warnings of a plan by their codes."""
    return {warning["code"]: warning["message"] for warning in plan["warnings"]}


def _resource(text: str) -> Object:
    gpus, *wants = text.split()
    asked = []
    for want in wants:
        required = "=" in want
        key, _, group = want.partition("=" if required else "~")
        asked.append({"key": key, "group": group, "requirementType": "required" if required else "preferred"})
    return {"gpu": int(gpus), **({"topology": asked} if asked else {})}
