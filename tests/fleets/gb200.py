"""A fleet of GB200 NVL72 racks, as `kubectl get nodes,pods -A -o json` shows one; the same on every call.

| nodes | GPUs | what is special |
|---|--:|---|
| r01 | 18 x 4 | one clique; r01-n12 is not ready |
| r02 | 18 x 4 | partitioned: cliques .0, .1 and .2 of one cluster UUID; r02-n04 offers 3 GPUs |
| r03 | 18 x 4 | one clique; r03-n05 is cordoned; a training run holds 12 nodes |
| r04 | 10 x 4 | half filled; r04-n03 has no clique label |
| r05 | 18 x 4 | one clique; r05-n17 is cordoned; parts of nodes are in use |
| r06 | 8 x 4 | half filled; its nodes are dedicated to inference by a second taint |
| cpu-01 to cpu-07 | 0 | no GPU, no taint |
| cp-1 to cp-3 | 0 | the control plane |

`python -m tests.fleets.gb200 FILE` writes it, one object per line.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
CLIQUE = "nvidia.com/gpu.clique"
ZONE = "topology.kubernetes.io/zone"
SPINE = "topology.kubernetes.io/spine"
RACK = "topology.kubernetes.io/rack"
LEVELS = f"zone={ZONE},spine={SPINE},rack={RACK},gpu-clique={CLIQUE},host=kubernetes.io/hostname"

GPU_TAINT: Json = {"key": GPU, "value": "present", "effect": "NoSchedule"}
DEDICATED: Json = {"key": "dedicated", "value": "inference", "effect": "NoSchedule"}
CONTROL_PLANE: Json = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}

NOT_READY = ("r01-n12",)
CORDONED = ("r03-n05", "r05-n17")
SHORT_OF_A_GPU = ("r02-n04",)
WITHOUT_CLIQUE = ("r04-n03",)

_SINCE = "2026-03-02T08:00:00Z"
_LATER = "2026-03-09T14:20:00Z"
_NAMES = uuid.UUID("6f1c0f4e-3c2b-5d7a-9a51-2f1f0e9b7c44")
_GPU_NODE = {"cpu": "144", "memory": "925682536Ki", "ephemeral-storage": "1770585368Ki", GPU: "4"}
_CPU_NODE = {"cpu": "64", "memory": "527942812Ki", "ephemeral-storage": "885292684Ki"}
_CONTROL_NODE = {"cpu": "16", "memory": "65842140Ki", "ephemeral-storage": "442646342Ki"}


@dataclass(frozen=True)
class Rack:
    """A rack: where it is, how many nodes it has, and how many cliques they are partitioned into."""

    name: str
    zone: str
    spine: str
    nodes: int = 18
    cliques: int = 1
    taints: tuple[str, ...] = ()

    def clique(self, number: int) -> str:
        """Return the clique of a node, counted from 1: the UUID of the rack's NVLink domain and a partition."""
        return f"{uuid.uuid5(_NAMES, self.name)}.{(number - 1) * self.cliques // self.nodes}"


RACKS = (
    Rack("r01", "hall-1", "s1"),
    Rack("r02", "hall-1", "s1", cliques=3),
    Rack("r03", "hall-1", "s2"),
    Rack("r04", "hall-1", "s2", nodes=10),
    Rack("r05", "hall-2", "s3"),
    Rack("r06", "hall-2", "s3", nodes=8, taints=("dedicated",)),
)


def dump() -> Json:
    """Return the whole list as kubectl would print it."""
    made = list(nodes())
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [*made, *pods(made)]}


def text(found: Json | None = None) -> str:
    """Return a list as JSON with one object per line."""
    found = dump() if found is None else found
    head = json.dumps({key: value for key, value in found.items() if key != "items"})[:-1]
    items = ",\n  ".join(json.dumps(item, separators=(",", ":")) for item in found["items"])
    return f'{head}, "items": [\n  {items}\n]}}\n'


def nodes(racks: Sequence[Rack] = RACKS) -> Iterator[Json]:
    """Yield all nodes: control plane, nodes without GPUs, racks."""
    for number in range(1, 4):
        labels = {"node-role.kubernetes.io/control-plane": "", **_place("hall-1", "s1", "r00")}
        yield _node(f"cp-{number}", labels, _CONTROL_NODE, [CONTROL_PLANE], arch="amd64")
    for number in range(1, 8):
        labels = {"node.kubernetes.io/instance-type": "cpu-64", **_place("hall-1", "s1", "r00")}
        yield _node(f"cpu-{number:02}", labels, _CPU_NODE, [], arch="amd64")
    for rack in racks:
        yield from rack_nodes(rack)


def rack_nodes(rack: Rack) -> Iterator[Json]:
    """Yield the nodes of a rack."""
    for number in range(1, rack.nodes + 1):
        name = f"{rack.name}-n{number:02}"
        labels = {
            "node.kubernetes.io/instance-type": "gb200-4x",
            "nvidia.com/cuda.driver.major": "570",
            "nvidia.com/gpu.clique": rack.clique(number),
            "nvidia.com/gpu.count": "4",
            "nvidia.com/gpu.family": "blackwell",
            "nvidia.com/gpu.memory": "189471",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-GB200",
            "nvidia.com/mig.capable": "true",
            **_place(rack.zone, rack.spine, rack.name),
        }
        if name in WITHOUT_CLIQUE:
            del labels[CLIQUE]
        own = [DEDICATED] if "dedicated" in rack.taints else []
        yield _node(name, labels, _GPU_NODE, [GPU_TAINT, *own], arch="arm64")


def pods(there: Iterable[Json]) -> Iterator[Json]:
    """Yield all pods: DaemonSets, static pods, and workloads that run, wait or have ended."""
    for node in there:
        yield from _daemons(node)
    yield from _workloads()


def _place(zone: str, spine: str, rack: str) -> dict[str, str]:
    return {ZONE: zone, SPINE: spine, RACK: rack}


def _node(name: str, labels: Mapping[str, str], offered: Mapping[str, str], taints: list[Json], arch: str) -> Json:
    ready, cordoned = name not in NOT_READY, name in CORDONED
    taints = [*taints]
    if cordoned:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": _LATER})
    if not ready:
        key = "node.kubernetes.io/unreachable"
        taints += ({"key": key, "effect": effect, "timeAdded": _LATER} for effect in ("NoSchedule", "NoExecute"))
    capacity = {**offered, "hugepages-2Mi": "0", "hugepages-1Gi": "0", "pods": "110"}
    allocatable = {**capacity, GPU: "3"} if name in SHORT_OF_A_GPU else capacity
    machine = {"kubernetes.io/arch": arch, "kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
    spec: Json = {"taints": taints} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": _uid(name), "creationTimestamp": _SINCE, "labels": {**machine, **labels}},
        "spec": {**spec, "unschedulable": True} if cordoned else spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [_condition(kind, ready=ready) for kind in ("MemoryPressure", "DiskPressure", "Ready")],
            "nodeInfo": {"architecture": arch, "kubeletVersion": "v1.34.2", "osImage": "Ubuntu 24.04.2 LTS"},
        },
    }


def _condition(kind: str, *, ready: bool) -> Json:
    well = "True" if kind == "Ready" else "False"
    reason = f"Kubelet{'Ready' if kind == 'Ready' else f'HasNo{kind}'}" if ready else "NodeStatusUnknown"
    moment = _SINCE if ready else _LATER
    return {"type": kind, "status": well if ready else "Unknown", "reason": reason, "lastTransitionTime": moment}


def _daemons(node: Json) -> Iterator[Json]:
    name = node["metadata"]["name"]
    everywhere = [("kube-system", "kube-proxy", "50m", "64Mi"), ("kube-system", "cilium", "200m", "512Mi")]
    on_gpus = [
        ("gpu-operator", "nvidia-driver-daemonset", "500m", "1Gi"),
        ("gpu-operator", "nvidia-dcgm-exporter", "100m", "256Mi"),
    ]
    for namespace, owner, cpu, memory in [*everywhere, *(on_gpus if GPU in node["status"]["capacity"] else ())]:
        pod = f"{owner}-{_uid(owner + name)[:5]}"
        made = _pod(namespace, pod, name, {"cpu": cpu, "memory": memory}, ("apps/v1", "DaemonSet", owner))
        made["spec"]["tolerations"] = [{"operator": "Exists"}]
        yield made
    for part in ("etcd", "kube-apiserver") if name.startswith("cp-") else ():
        asked = {"cpu": "250m", "memory": "1Gi"}
        made = _pod("kube-system", f"{part}-{name}", name, asked, ("v1", "Node", name))
        made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": _uid(part)[:32]}
        yield made


def _workloads() -> Iterator[Json]:
    trainer = {"cpu": "128", "memory": "800Gi", GPU: "4"}
    for number, node in enumerate([*range(1, 5), *range(6, 14)]):
        yield _job("research", "pretrain-70b", number, f"r03-n{node:02}", trainer)
    for number, node in enumerate((1, 2, 3, 4, 5, 6)):
        yield _job("research", "tune-8b", number, f"r05-n{node:02}", {"cpu": "32", "memory": "200Gi", GPU: "2"})
    for number, node in enumerate((1, 2, 3)):
        asked = {"cpu": "60", "memory": "400Gi", GPU: "4"}
        made = _pod("chat", f"chat-decode-7c9f8-{number}", f"r06-n{node:02}", asked, ("apps/v1", "ReplicaSet", "chat"))
        made["spec"]["tolerations"] = [{**DEDICATED, "operator": "Equal"}, {"key": GPU, "operator": "Exists"}]
        yield made
    notebook = _pod("research", "notebook-0", "r05-n07", {"cpu": "8", "memory": "64Gi", GPU: "1"})
    yield {**notebook, "metadata": {**notebook["metadata"], "deletionTimestamp": _LATER}}
    for number in range(3):
        yield _job("research", "evaluate-3", number, f"r04-n{number + 1:02}", trainer, phase="Succeeded")
    yield _job("research", "evaluate-4", 0, "r04-n04", trainer, phase="Failed")
    for number in range(2):
        yield _job("research", "distill-2", number, "", trainer, phase="Pending")
    for number in range(1, 4):
        asked = {"cpu": "4", "memory": "16Gi"}
        yield _pod("monitoring", f"prometheus-{number}", f"cpu-{number:02}", asked, ("apps/v1", "StatefulSet", "prom"))


def _job(namespace: str, job: str, number: int, node: str, asked: Json, phase: str = "Running") -> Json:
    made = _pod(
        namespace, f"{job}-{number}-{_uid(job + str(number))[:5]}", node, asked, ("batch/v1", "Job", job), phase
    )
    made["metadata"]["labels"] = {"batch.kubernetes.io/job-name": job}
    made["spec"]["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    return made


def _pod(
    namespace: str,
    name: str,
    node: str,
    asked: Mapping[str, str],
    owner: tuple[str, str, str] | None = None,
    phase: str = "Running",
) -> Json:
    limits = {GPU: asked[GPU]} if GPU in asked else {}
    resources = {"requests": dict(asked), **({"limits": limits} if limits else {})}
    meta: Json = {"name": name, "namespace": namespace, "uid": _uid(f"{namespace}/{name}"), "creationTimestamp": _SINCE}
    if owner:
        version, kind, whose = owner
        reference = {"apiVersion": version, "kind": kind, "name": whose, "uid": _uid(whose), "controller": True}
        meta["ownerReferences"] = [reference]
    status: Json = {"phase": phase}
    if not node:
        reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": _LATER}
        status["conditions"] = [reason]
    spec: Json = {"containers": [{"name": "main", "image": "example.com/main:1.0", "resources": resources}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**spec, "nodeName": node} if node else spec,
        "status": status,
    }


def _uid(text: str) -> str:
    return str(uuid.uuid5(_NAMES, text))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
