"""A fleet of several kinds of GPUs, as `kubectl get nodes,pods -A -o json` shows one; the same on every call.

| nodes | offer | special about them |
|---|---|---|
| h-0 to h-7 | 8 nvidia.com/gpu | tainted nvidia.com/gpu; h-2 offers 7; h-3 is not ready, and tainted for it |
| mig-0, mig-1 | 7 nvidia.com/mig-1g.10gb | the same product as h-*, in partitions |
| mi-0 to mi-3 | 8 amd.com/gpu | tainted amd.com/gpu; infer/mi holds mi-0 and mi-1 |
| spare-0, spare-1 | 8 nvidia.com/gpu | tainted sku besides |
| cpu-0 | 0 | no GPU, no taint |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"
PARTITION = "nvidia.com/mig-1g.10gb"
LEVELS = "zone=topology.kubernetes.io/zone,host=kubernetes.io/hostname"


def text() -> str:
    """Return the whole list as JSON."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes(), *pods()]})


def nodes() -> Iterator[Json]:
    """Yield all nodes."""
    h100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    for number in range(8):
        down = ("node.kubernetes.io/not-ready",) if number == 3 else ()
        offered = {NVIDIA: "7" if number == 2 else "8"}
        yield _node(f"h-{number}", "a", offered, NVIDIA, *down, labels=h100, ready=not down)
    for number in range(2):
        yield _node(f"mig-{number}", "a", {NVIDIA: "0", PARTITION: "7"}, NVIDIA, labels=h100)
    for number in range(4):
        yield _node(f"mi-{number}", "b", {AMD: "8"}, AMD)
    for number in range(2):
        yield _node(f"spare-{number}", "c", {NVIDIA: "8"}, NVIDIA, "sku")
    yield _node("cpu-0", "a", {})


def pods() -> Iterator[Json]:
    """Yield the pods that run."""
    for number in range(2):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"mi-{number}",
                "namespace": "infer",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "mi", "controller": True}],
            },
            "spec": {
                "nodeName": f"mi-{number}",
                "containers": [{"name": "main", "resources": {"limits": {AMD: "8"}}}],
            },
            "status": {"phase": "Running"},
        }


def _node(
    name: str,
    zone: str,
    offered: Mapping[str, str],
    *taints: str,
    labels: Mapping[str, str] | None = None,
    ready: bool = True,
) -> Json:
    place = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    listed = [{"key": key, "effect": "NoSchedule"} for key in taints]
    amounts = {"cpu": "192", "memory": "2000Gi", "pods": "110", **offered}
    state = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**place, **(labels or {})}},
        "spec": {"taints": listed} if listed else {},
        "status": {"allocatable": amounts, "conditions": [state]},
    }
