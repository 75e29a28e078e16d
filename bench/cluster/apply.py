"""A gang on a real cluster: from applying its objects to all pods bound, through Coterie's client and by kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from bench.timing import once, say
from coterie.backends.kai.manifests.render import RenderRequest, render
from coterie.frontends.workflow.lower import lower
from coterie.kube.api import Api
from coterie.kube.apply import apply_all
from coterie.kube.kubeconfig import choose
from coterie.library import read_cluster, read_workflow
from coterie.planning.inputs import pool_for
from coterie.sources import Snapshot
from lab import GoMissingError, Lab, nodes

Manifests = Sequence[dict[str, Any]]

NODES = 512
MODELS = 4
TASKS_PER_MODEL = 16
NODES_PER_RACK = 16
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Way:
    """The median milliseconds of one way to apply a gang: until all is applied, and until all pods are bound."""

    applied_ms: float
    bound_ms: float


@dataclass(frozen=True, slots=True)
class ApplyTimes:
    """Both ways, alternating on one cluster, and how long such a cluster took to start."""

    nodes: int
    pods: int
    objects: int
    runs: int
    coterie: Way
    kubectl: Way
    starts_s: Sequence[float]


def measure(runs: int, starts: int, count: int = NODES) -> ApplyTimes | None:
    """Start clusters, and apply a gang on the last one alternately; None, with a message, without a cluster."""
    times: list[float] = []
    try:
        for number in range(starts - 1):
            say(f"a cluster is started: {number + 1} of {starts}")
            lab = Lab()
            times.append(once(lab.start)[0] / 1e6)
            lab.stop()
        say(f"a cluster is started: {starts} of {starts}")
        lab = Lab()
        times.append(once(lab.start)[0] / 1e6)
    except GoMissingError as error:
        say(f"*** {error}: a real cluster is NOT measured. {error.hint}")
        return None
    try:
        return compare(lab, runs, count, times)
    finally:
        lab.stop()


def compare(lab: Lab, runs: int, count: int, starts_s: Sequence[float]) -> ApplyTimes:
    """Apply the gang to an empty cluster alternately, after one uncounted run of each way."""
    cluster = snapshot(count)
    nodes.add(lab, cluster)
    manifests = gang(cluster)
    file = lab.folder / "gang.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}), encoding="utf-8")
    ways: dict[str, Callable[[], None]] = {
        "coterie": lambda: _by_coterie(lab.kubeconfig, manifests),
        "kubectl": lambda: _by_kubectl(lab, file),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(-1, runs):
        say(f"{count:,} nodes: a gang is applied by both, {turn + 1} of {runs}")
        # The second way finds a cluster that was just busy, so the order alternates.
        for name in sorted(ways, reverse=turn % 2 == 1):
            found = _timed(lab, ways[name])
            if turn >= 0:
                times[name].append(found)
            _remove(lab, manifests)
    made = {name: Way(*(median(column) / 1e3 for column in zip(*rows, strict=True))) for name, rows in times.items()}
    pods = sum(manifest["kind"] == "Pod" for manifest in manifests)
    return ApplyTimes(count, pods, len(manifests), runs, made["coterie"], made["kubectl"], starts_s)


def snapshot(count: int) -> Snapshot:
    """Return an empty cluster of racks in two blocks."""
    racks = [f"r{number}" for number in range(count // NODES_PER_RACK)]
    half = len(racks) // 2
    fleet = [
        {
            "domains": {"block": block, "rack": chosen},
            "nodes": NODES_PER_RACK,
            "gpu": 8,
            "cpu": 128,
            "memory": "2Ti",
        }
        for block, chosen in (("b0", racks[:half]), ("b1", racks[half:]))
    ]
    keys = [{"key": key, "label": f"bench.coterie.dev/{key}"} for key in ("block", "rack")]
    return read_cluster(yaml.safe_dump({"topology_keys": keys, "fleet": fleet}).encode())


def gang(cluster: Snapshot) -> Manifests:
    """Return a gang as Coterie writes it for KAI: models of equal tasks, each in one rack, and all in one block."""
    tasks = [
        {
            "name": f"model{model}-{number}",
            "lead": model == number == 0,
            "resource": f"model{model}",
            "image": "work",
            "command": ["run"],
        }
        for model in range(MODELS)
        for number in range(TASKS_PER_MODEL)
    ]
    resources = {
        f"model{model}": {"gpu": 8, "topology": [{"key": "block"}, {"key": "rack", "group": f"model{model}"}]}
        for model in range(MODELS)
    }
    spec = {"name": "bench", "resources": resources, "groups": [{"name": "train", "tasks": tasks}]}
    workflow = read_workflow(json.dumps({"workflow": spec}).encode())
    pool = pool_for(None, None, None, None, cluster)
    return render(workflow, lower(workflow, pool), pool, RenderRequest("default", cluster.cluster)).manifests


def _timed(lab: Lab, way: Callable[[], None]) -> tuple[float, float]:
    """Return the microseconds until a way has applied everything, and until every pod has a node."""
    applied, _ = once(way)
    waited, _ = once(lambda: _until_bound(lab))
    return applied, applied + waited


def _by_coterie(kubeconfig: Path, manifests: Manifests) -> None:
    with Api(choose("", {"KUBECONFIG": str(kubeconfig)})) as api:
        for _ in apply_all(api, manifests):
            pass


def _by_kubectl(lab: Lab, file: Path) -> None:
    lab.kubectl("apply", "-f", str(file))


def _until_bound(lab: Lab) -> None:
    path = lab.api.resource("pods").path(namespace="default")
    homeless = {"fieldSelector": "spec.nodeName=", "limit": "1"}
    lab.wait(lambda: not lab.api.request("GET", path, params=homeless)["items"], _PATIENCE_S, "all pods are bound")


def _remove(lab: Lab, manifests: Manifests) -> None:
    """Delete all applied objects, and return when none is left that KAI could see."""
    api = lab.api
    for manifest in reversed(manifests):
        meta = manifest["metadata"]
        group = manifest["apiVersion"].rpartition("/")[0]
        kind = f"{manifest['kind']}.{group}" if group else manifest["kind"]
        api.delete(kind, meta["name"], meta.get("namespace", "default"), grace=0)
    left = ("pods", "podgroups.scheduling.run.ai", "bindrequests", "queues", "topologies.kai.scheduler")
    lab.wait(lambda: not any(api.objects(kind) for kind in left), _PATIENCE_S, "the gang is gone")
