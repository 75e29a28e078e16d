"""Graph deployments for tests: small valid ones in both versions, and helpers to read, change and judge them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from coterie.errors import Fault, SpecErrors, field_path
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.dynamo.rules.admission import create_faults, update_faults
from coterie.frontends.dynamo.settings import DEFAULTS, DynamoSettings
from coterie.frontends.kubernetes.objects import read_resources
from coterie.topology.levels import Topology

Data = dict[str, Any]
Change = Callable[[Data], None]

LEVELS = Topology.of(
    ("zone", "topology.kubernetes.io/zone"),
    ("block", "fabric.example/block"),
    ("rack", "fabric.example/rack"),
    ("host", "kubernetes.io/hostname"),
)
TOPOLOGIES = {"t": LEVELS}


def pod(image: str = "registry.example/dynamo:1.4.0", gpus: int = 0) -> Data:
    resources = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return {"spec": {"containers": [{"name": "main", "image": image, **resources}]}}


def beta() -> Data:
    """Return a graph of two components, a single-node one and one that spans nodes."""
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {
            "backendFramework": "vllm",
            "topologyConstraint": {"clusterTopologyName": "t", "packDomain": "zone"},
            "components": [
                {"name": "Frontend", "type": "frontend", "podTemplate": pod()},
                {
                    "name": "Decode",
                    "type": "decode",
                    "replicas": 2,
                    "multinode": {"nodeCount": 4},
                    "topologyConstraint": {"packDomain": "rack"},
                    "podTemplate": pod(gpus=4),
                },
            ],
        },
    }


def alpha() -> Data:
    """Return the same graph in the older version; Decode comes first by name."""
    main = {"image": "registry.example/dynamo:1.4.0"}
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {
            "backendFramework": "vllm",
            "topologyConstraint": {"topologyProfile": "t", "packDomain": "zone"},
            "services": {
                "Frontend": {"componentType": "frontend", "extraPodSpec": {"mainContainer": main}},
                "Decode": {
                    "componentType": "worker",
                    "subComponentType": "decode",
                    "replicas": 2,
                    "multinode": {"nodeCount": 4},
                    "topologyConstraint": {"packDomain": "rack"},
                    "resources": {"limits": {"gpu": "4"}},
                    "extraPodSpec": {"mainContainer": main},
                },
            },
        },
    }


def text(data: Data) -> bytes:
    return json.dumps(data, indent=1).encode()


def read(data: Data) -> GraphDeployment:
    [resource] = read_resources(text(data), "graph.yaml").resources
    return read_graph(resource)


def changed(data: Data, *changes: Change) -> Data:
    found = copy.deepcopy(data)
    for change in changes:
        change(found)
    return found


def put(path: str, value: Any) -> Change:
    """Return a change that sets what stands at a dotted path, such as `spec.components.1.replicas`."""

    def change(data: Data) -> None:
        *above, last = path.split(".")
        holder: Any = data
        for step in above:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        if isinstance(holder, list):
            holder[int(last)] = value
        else:
            holder[last] = value

    return change


def drop(path: str) -> Change:
    def change(data: Data) -> None:
        *above, last = path.split(".")
        holder: Any = data
        for step in above:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        del holder[int(last) if isinstance(holder, list) else last]

    return change


def named(fault: Fault) -> tuple[str, str]:
    """Return what an API server says of a fault: its type and the field."""
    return str(fault.type), fault.field or field_path(fault.path)


def created(data: Data, topologies: Any = TOPOLOGIES, settings: DynamoSettings = DEFAULTS) -> list[Fault]:
    """Return the faults of creating an object, those of its shape first."""
    try:
        return create_faults(read(data), topologies, settings)
    except SpecErrors as errors:
        return list(errors.faults)


def updated(old: Data, new: Data, topologies: Any = TOPOLOGIES, settings: DynamoSettings = DEFAULTS) -> list[Fault]:
    """Return the faults of replacing one object by another."""
    try:
        return update_faults(read(old), read(new), topologies, settings)
    except SpecErrors as errors:
        return list(errors.faults)
