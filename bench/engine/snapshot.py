"""The output of kubectl for a large cluster: nodes and pods with all the fields that placement does not need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.engine.cases import NODES_PER_RACK, RACKS_PER_BLOCK

_TIME = "2025-03-04T05:06:07Z"
_DIGEST = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_Json = dict[str, Any]


def kubectl_json(nodes: int, pods: int) -> bytes:
    """Return the text of `kubectl get nodes,pods -A -o json`: a DaemonSet's pod on every node, the rest GPU jobs."""
    items = ",\n".join((*_nodes(nodes), *_pods(nodes, pods)))
    text = f'{{\n    "apiVersion": "v1",\n    "items": [\n{items}\n    ],\n    "kind": "List",\n'
    return f'{text}    "metadata": {{\n        "resourceVersion": ""\n    }}\n}}\n'.encode()


def _nodes(nodes: int) -> Iterator[str]:
    template = _text(_node())
    for number in range(nodes):
        rack = number // NODES_PER_RACK
        yield _filled(template, number, NODE=f"gpu-{number}", RACK=f"r{rack}", BLOCK=f"b{rack // RACKS_PER_BLOCK}")


def _pods(nodes: int, pods: int) -> Iterator[str]:
    daemon, job = _text(_pod("DaemonSet", gpus=0)), _text(_pod("Job", gpus=4))
    for number in range(pods):
        template, what = (daemon, "device-plugin") if number < nodes else (job, f"train-{number // 32}")
        yield _filled(template, number, NODE=f"gpu-{number % nodes}", OWNER=what)


def _text(item: _Json) -> str:
    return "\n".join("        " + line for line in json.dumps(item, indent=4).splitlines())


def _filled(template: str, number: int, **words: str) -> str:
    text = template.replace("<N>", f"{number:05x}")
    for name, word in words.items():
        text = text.replace(f"<{name}>", word)
    return text


def _conditions(*kinds: str) -> list[_Json]:
    return [
        {
            "lastHeartbeatTime": _TIME,
            "lastTransitionTime": _TIME,
            "message": f"{kind} is as it should be",
            "reason": f"Kubelet{kind}",
            "status": "True" if kind.endswith(("Ready", "Initialized", "Scheduled", "Containers")) else "False",
            "type": kind,
        }
        for kind in kinds
    ]


def _node() -> _Json:
    quantities = {
        "cpu": "127650m",
        "ephemeral-storage": "1817309532160",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "2113393252Ki",
        "nvidia.com/gpu": "8",
        "pods": "110",
        "rdma/hca_shared_devices": "63",
    }
    features = {f"feature.node.kubernetes.io/cpu-cpuid.FLAG{flag}": "true" for flag in range(24)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": '{"csi.example.com":"<NODE>"}',
                "nfd.node.kubernetes.io/feature-labels": ",".join(f"cpu-cpuid.FLAG{flag}" for flag in range(24)),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": _TIME,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                **features,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": "<NODE>",
                "kubernetes.io/os": "linux",
                "nvidia.com/cuda.driver.major": "550",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.machine": "rack-server",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "topology.kubernetes.io/block": "<BLOCK>",
                "topology.kubernetes.io/rack": "<RACK>",
                "topology.kubernetes.io/zone": "z1",
            },
            "name": "<NODE>",
            "resourceVersion": "1<N>",
            "uid": "6f1de6a6-0000-4000-8000-0000000<N>",
        },
        "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"], "providerID": "example:///z1/<NODE>"},
        "status": {
            "addresses": [
                {"address": "10.0.0.1", "type": "InternalIP"},
                {"address": "<NODE>", "type": "Hostname"},
            ],
            "allocatable": quantities,
            "capacity": quantities,
            "conditions": _conditions("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [
                {
                    "names": [f"registry.example.com/team/image-{image}@{_DIGEST}", f"team/image-{image}:1.{image}"],
                    "sizeBytes": 1_000_000 * image,
                }
                for image in range(1, 26)
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "0a1b2c3d-0000-4000-8000-0000000<N>",
                "containerRuntimeVersion": "containerd://1.7.20",
                "kernelVersion": "5.15.0-113-generic",
                "kubeProxyVersion": "v1.34.1",
                "kubeletVersion": "v1.34.1",
                "machineID": "0123456789abcdef0123456789a<N>",
                "operatingSystem": "linux",
                "osImage": "Ubuntu 22.04.4 LTS",
                "systemUUID": "0a1b2c3d-0000-4000-9000-0000000<N>",
            },
        },
    }


def _pod(owner: str, gpus: int) -> _Json:
    resources: _Json = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    if gpus:
        amounts = {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": str(gpus)}
        resources = {"limits": amounts, "requests": amounts}
    container = {
        "args": ["--config=/etc/config/main.yaml", "--log-level=info"],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)],
        "image": "registry.example.com/team/main:1.0",
        "imagePullPolicy": "IfNotPresent",
        "name": "main",
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": f"/mnt/{number}", "name": f"volume-{number}"} for number in range(4)],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"cni.example.com/podIP": "10.1.0.7/32", "kubectl.kubernetes.io/default-container": "main"},
            "creationTimestamp": _TIME,
            "generateName": "<OWNER>-",
            "labels": {"app.kubernetes.io/name": "<OWNER>", "controller-revision-hash": "<N>", "team": "research"},
            "name": "<OWNER>-<N>",
            "namespace": "kube-system" if owner == "DaemonSet" else "research",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1" if owner == "DaemonSet" else "batch/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": owner,
                    "name": "<OWNER>",
                    "uid": "7a1de6a6-0000-4000-8000-00000000beef",
                }
            ],
            "resourceVersion": "2<N>",
            "uid": "8b1de6a6-0000-4000-8000-0000000<N>",
        },
        "spec": {
            "containers": [container],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "nodeName": "<NODE>",
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always" if owner == "DaemonSet" else "Never",
            "schedulerName": "default-scheduler",
            "serviceAccount": "default",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": f"node.kubernetes.io/{what}", "operator": "Exists"}
                for what in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure")
            ],
            "volumes": [
                {"configMap": {"defaultMode": 420, "name": f"config-{number}"}, "name": f"volume-{number}"}
                for number in range(4)
            ],
        },
        "status": {
            "conditions": _conditions("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"),
            "containerStatuses": [
                {
                    "containerID": "containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b<N>",
                    "image": "registry.example.com/team/main:1.0",
                    "imageID": f"registry.example.com/team/main@{_DIGEST}",
                    "lastState": {},
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": _TIME}},
                }
            ],
            "hostIP": "10.0.0.1",
            "hostIPs": [{"ip": "10.0.0.1"}],
            "phase": "Running",
            "podIP": "10.1.0.7",
            "podIPs": [{"ip": "10.1.0.7"}],
            "qosClass": "Burstable",
            "startTime": _TIME,
        },
    }
