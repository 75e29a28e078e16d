"""A gang of an NVLink pool on a real cluster: from `submit` to all pods bound, and the same objects by kubectl.

`python -m bench.submission [RUNS] [NODES …]` prints the ratio, and the calls of the service for one workflow from its
submission to its clean end, for each number of nodes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from bench.timing import once, say
from coterie.kube.api import Api, ApiResponse
from coterie.kube.errors import RequestDescription
from coterie.library import read_cluster
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from lab import Lab, nodes

PODS = 64
NODES_PER_RACK = 16
ZONE, RACK = "topology.kubernetes.io/zone", "nvidia.com/gpu.clique"
LEVELS = [{"key": "zone", "label": ZONE}, {"key": "rack", "label": RACK}]
_OWN = "app.kubernetes.io/managed-by=coterie"
_KINDS = ("computedomains", "configmaps", "services", "podgroups.scheduling.run.ai", "pods")
_PATIENCE_S = 300.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SubmissionTimes:
    """The median seconds of both ways on one cluster, and the calls of the service for one workflow, by verb."""

    nodes: int
    runs: int
    coterie_s: float
    kubectl_s: float
    calls: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """The time of Coterie relative to kubectl."""
        return self.coterie_s / self.kubectl_s


class CallCount:
    """The number of calls of all clients in this process, without watches."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        attempt = Api.attempt

        def counted(
            api: Api, call: RequestDescription, params: Mapping[str, str | None] | None = None, body: object = None
        ) -> ApiResponse:
            self.calls[call.verb] += 1
            return attempt(api, call, params, body)

        Api.attempt = counted  # type: ignore[assignment,method-assign]


def measure(lab: Lab, runs: int, count: int, calls: CallCount) -> SubmissionTimes:
    """Run a gang both ways alternately on a cluster of so many nodes, after one uncounted run of each."""
    racks = [f"r{number}" for number in range(count // NODES_PER_RACK)]
    fleet = [{"domains": {"zone": "a", "rack": racks}, "nodes": NODES_PER_RACK, "gpu": 8, "cpu": 128, "memory": "2Ti"}]
    nodes.add(lab, read_cluster(yaml.safe_dump({"topology_keys": LEVELS, "fleet": fleet}).encode()))
    by_coterie, by_kubectl, counted = list[float](), list[float](), list[Mapping[str, int]]()
    with tempfile.TemporaryDirectory() as folder, Service(_settings(Path(folder))) as service:
        lab.wait(lambda: service.pool("gb200")["counted"], _PATIENCE_S, "the cluster is known")
        for turn in range(-1, runs):
            say(f"{count:,} nodes: a gang is submitted, and applied by kubectl, {turn + 1} of {runs}")
            _restart_kai(lab)
            before = Counter(calls.calls)
            submitted, ident = once(lambda turn=turn: str(service.submit(_gang(turn))["id"]))  # type: ignore[misc]
            bound, _ = once(lambda: _until_bound(lab))
            objects = _objects(lab)
            service.cancel(ident)
            lab.wait(lambda ident=ident: service.store.workflow(ident).finished, _PATIENCE_S, "it is clean")  # type: ignore[misc]
            calls_made = calls.calls - before
            file = Path(folder) / "gang.json"
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            # Under other names, since KAI takes pods of the same names for the ones it has just bound.
            file.write_text(text.replace(ident, ident.replace("bench", "other")), encoding="utf-8")
            _restart_kai(lab)
            applied, _ = once(lambda file=file: lab.kubectl("apply", "-f", str(file)))  # type: ignore[misc]
            bound_too, _ = once(lambda: _until_bound(lab))
            lab.kubectl("delete", "-f", str(file), "--grace-period=1")
            if turn >= 0:
                by_coterie.append((submitted + bound) / 1e6)
                by_kubectl.append((applied + bound_too) / 1e6)
                counted.append(calls_made)
    middle = sorted(counted, key=lambda found: sum(found.values()))[len(counted) // 2]
    return SubmissionTimes(count, runs, median(by_coterie), median(by_kubectl), middle)


def _settings(folder: Path) -> Settings:
    config = {
        "backends": {"lab": {"scheduler": "kai", "namespace": "default"}},
        "pools": {"gb200": {"backend": "lab", "nvlink": True, "topology_keys": LEVELS}},
    }
    file = folder / "coterie.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return Settings(store=str(folder / "store.db"), state=folder / "state", config=file, grace_s=1.0)


def _gang(turn: int) -> Submission:
    tasks = [
        {
            "name": f"t{number}",
            "lead": number == 0,
            "image": "work",
            "command": ["run"],
            "resource": f"m{number // NODES_PER_RACK}",
        }
        for number in range(PODS)
    ]
    resources = {
        f"m{model}": {"gpu": 8, "cpu": 8, "topology": [{"key": "zone"}, {"key": "rack", "group": f"m{model}"}]}
        for model in range(PODS // NODES_PER_RACK)
    }
    spec = {"name": f"bench{turn + 1}", "resources": resources, "groups": [{"name": "train", "tasks": tasks}]}
    return Submission(json.dumps({"workflow": spec}).encode())


def _objects(lab: Lab) -> Sequence[Json]:
    """Return the objects of the gang as somebody would write them; the ComputeDomain first, and the pods last."""
    found = []
    for kind in _KINDS:
        for each in lab.objects(kind, "default", _OWN):
            meta = {
                key: each["metadata"][key]
                for key in ("name", "namespace", "labels", "annotations")
                if key in each["metadata"]
            }
            spec = {key: value for key, value in each.get("spec", {}).items() if key not in {"nodeName", "clusterIPs"}}
            resource = lab.api.resource(kind)
            version = f"{resource.group}/{resource.version}" if resource.group else resource.version
            content = {"spec": spec} if spec else {"data": each.get("data", {})}
            found.append({"apiVersion": version, "kind": resource.kind, "metadata": meta, **content})
    return found


def _restart_kai(lab: Lab) -> None:
    """Restart KAI, which takes the devices of claims that go within one of its cycles for taken (seen on 0.13.1)."""
    scheduler = lab.programs["kai-scheduler"]
    scheduler.stop()
    said = scheduler.log.stat().st_size
    scheduler.start()
    lab.wait(lambda: b"End scheduling" in scheduler.log.read_bytes()[said:], _PATIENCE_S, "KAI runs again")


def _until_bound(lab: Lab) -> None:
    path = lab.api.resource("pods").path(namespace="default")

    def bound() -> bool:
        pods = lab.api.request("GET", path, params={"labelSelector": _OWN})["items"]
        return len(pods) == PODS and all("nodeName" in each["spec"] for each in pods)

    lab.wait(bound, _PATIENCE_S, "all pods are bound")


def main() -> None:
    """Measure, and print a line for each number of nodes."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    calls = CallCount()
    for count in [int(word) for word in sys.argv[2:]] or [128, 512]:
        with Lab() as lab:
            os.environ["KUBECONFIG"] = str(lab.kubeconfig)
            found = measure(lab, runs, count, calls)
        total = sum(found.calls.values())
        listed = ", ".join(f"{number} {verb}" for verb, number in sorted(found.calls.items()))
        times = f"submit {found.coterie_s:.2f} s, kubectl apply {found.kubectl_s:.2f} s, ratio {found.ratio:.2f}"
        say(f"{count:,} nodes, {PODS} pods: {times}; {total} calls for one workflow ({listed})")


if __name__ == "__main__":
    main()
