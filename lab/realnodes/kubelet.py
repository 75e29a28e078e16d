"""The kubelet of one node."""

from __future__ import annotations

import json
from pathlib import Path

from lab.realnodes.containerd import SOCKET
from lab.realnodes.namespaces import KUBELET_FOLDER

# On nodes with a kubelet of their own; KWOK leaves them alone.
REAL = "coterie.dev/lab-real"
# No daemon that would lift it is part of the lab.
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


def write_configuration(folder: Path, cgroup: str, port: int) -> Path:
    """Write the configuration of a kubelet, and return the file."""
    resolver = folder / "resolv.conf"
    resolver.write_text("", encoding="utf-8")
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": port,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "podLogsDir": str(folder / "pod-logs"),
        "resolvConf": str(resolver),
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": [],
        # The resources of a node are those of the cluster file: its kubelet tells its own once, and then no more.
        "nodeStatusUpdateFrequency": "24h",
        "nodeStatusReportFrequency": "24h",
        # A machine with a nearly full disk evicts nothing, and keeps the only image there is.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "syncFrequency": "10s",
        "logging": {"verbosity": 2},
    }
    file = folder / "kubelet.json"
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return file


def command(binary: Path, name: str, folder: Path, configuration: Path, kubeconfig: Path) -> list[str]:
    """Return the command that starts a kubelet."""
    return [
        str(binary),
        f"--config={configuration}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={KUBELET_FOLDER}",
        f"--cert-dir={folder / 'kubelet-certificates'}",
        f"--hostname-override={name}",
        f"--node-labels={REAL}=true",
        # A kubelet would otherwise want an address of the machine that is not 127.0.0.1.
        "--cloud-provider=external",
    ]
