"""Workflows of a service on a real cluster: `python -m bench.cluster.submission [gang] [rest] [restart]`, or all three.

`gang` compares a gang of an NVLink pool, from `submit` to all pods bound, with the same objects by kubectl, and counts
the calls of the service for one workflow from its submission to its clean end. `rest` and `restart` are explained in
`bench.cluster.steady_state`. `--help` lists the sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from bench.cluster import steady_state
from bench.cluster.call_count import CallCount
from bench.timing import once, say
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
_PARTS = ("gang", "rest", "restart")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SubmissionTimes:
    """The median seconds of both ways on one cluster; the calls of the service for one workflow, by verb and kind."""

    nodes: int
    runs: int
    coterie_s: float
    kubectl_s: float
    calls: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """The time of Coterie relative to kubectl."""
        return self.coterie_s / self.kubectl_s


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
    """Restart KAI, in which devices of earlier gangs can stay taken (docs/kai.md, P)."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each result."""
    options = _options(arguments)
    for part in options.parts or _PARTS:
        if part == "gang":
            _compare(options)
        elif part == "rest":
            with _large(options.rest_nodes) as lab:
                say(str(steady_state.rest(lab, options.rest_nodes, options.rest_workflows, options.rest_seconds)))
        else:
            with _large(options.restart_nodes) as lab:
                say(str(steady_state.restart(lab, options.restart_nodes, options.restart_workflows)))


def _compare(options: argparse.Namespace) -> None:
    calls = CallCount()
    for count in options.nodes:
        with Lab() as lab:
            os.environ["KUBECONFIG"] = str(lab.kubeconfig)
            found = measure(lab, options.runs, count, calls)
        total = sum(found.calls.values())
        listed = ", ".join(f"{number} {call}" for call, number in sorted(found.calls.items()))
        times = f"submit {found.coterie_s:.2f} s, kubectl apply {found.kubectl_s:.2f} s, ratio {found.ratio:.2f}"
        say(f"{count:,} nodes, {PODS} pods: {times}; {total} calls for one workflow ({listed})")


@contextmanager
def _large(count: int) -> Iterator[Lab]:
    with Lab(compute_domain=False) as lab:
        say(f"a cluster of {count:,} nodes is made")
        steady_state.add_nodes(lab, count)
        yield lab


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster.submission", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], metavar="PART", help=f"{', '.join(_PARTS)}: all")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of the gang, each way")
    parser.add_argument("--nodes", type=int, nargs="+", default=[128, 512], help="sizes of clusters for the gang")
    parser.add_argument("--rest-nodes", type=int, default=5000)
    parser.add_argument("--rest-workflows", type=int, default=200)
    parser.add_argument("--rest-seconds", type=float, default=120.0, help="how long the service is watched at rest")
    parser.add_argument("--restart-nodes", type=int, default=500)
    parser.add_argument("--restart-workflows", type=int, default=1000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
