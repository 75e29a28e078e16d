"""Kubernetes' own scheduler, for gangs without KAI or beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lab.control_plane.kubernetes import GATES
from lab.ports import Ports
from lab.process import Program

_GROUP = "kubescheduler.config.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class KubeScheduler:
    """The program, and the port at which it answers once it runs."""

    program: Program
    port: int


def kube_scheduler(binaries: Path, folder: Path, kubeconfig: Path, ports: Ports, *, tied: bool) -> KubeScheduler:
    """Prepare kube-scheduler as `default-scheduler`; of all racks that fit it takes the fullest by GPUs."""
    port = ports.take()
    packing = {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}
    fit = {"apiVersion": _GROUP, "kind": "NodeResourcesFitArgs", "scoringStrategy": packing}
    configuration = {
        "apiVersion": _GROUP,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
        "profiles": [
            {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}]}
        ],
    }
    file = folder / "kube-scheduler.json"
    file.write_text(json.dumps(configuration), encoding="utf-8")
    command = [
        str(binaries / "kube-scheduler"),
        f"--config={file}",
        f"--feature-gates={GATES}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--authentication-skip-lookup=true",
    ]
    return KubeScheduler(Program("kube-scheduler", command, folder / "logs" / "kube-scheduler.log", tied=tied), port)
