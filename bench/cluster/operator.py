"""The operator at size: decisions of its webhook, requests for one changed level, a restart, and memory."""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2

from bench.report import table
from bench.timing import say
from coterie.frontends.admission import KnownTopologies
from coterie.json_log import log_as_json
from coterie.kube.kinds import POD_CLIQUE_SET, ObjectKind
from coterie.operator.crds import definitions
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.operator import Operator
from coterie.operator.settings import OperatorSettings
from coterie.operator.webhook.server import Reviewer, Webhook, webhook_app
from coterie.topology.levels import Topology
from lab import Lab

Object = dict[str, Any]

LEVELS = (("zone", "topology.kubernetes.io/zone"), ("rack", "example.com/rack"), ("host", "kubernetes.io/hostname"))
_CLIENTS = 4
_PATIENCE_S = 900.0
_WRITES = frozenset({"post", "put", "patch", "delete"})
_READS = frozenset({"get", "list"})


@dataclass(frozen=True, slots=True)
class Decisions:
    """The times of decisions over TLS in milliseconds, one after the other, and their rate with several clients."""

    topologies: int
    requests: int
    median_ms: float
    p99_ms: float
    per_second: float


@dataclass(frozen=True, slots=True)
class ClusterCosts:
    """The costs of an operator on a cluster: requests by what was changed, seconds, and memory."""

    topologies: int
    sets: int
    first_s: float
    restart_s: float
    restart_writes: int
    change_s: float
    change_writes: int
    change_reads: int
    changed: int
    memory_mb: float


def decisions(topologies: int, requests: int) -> Decisions:
    """Measure decisions on sets that name one of many topologies."""
    known = KnownTopologies({f"t{number}": Topology.of(*LEVELS) for number in range(topologies)}, told=True)
    authorities: list[bytes] = []
    app = webhook_app(Reviewer(lambda: known), OperatorMetrics())
    webhook = Webhook(app, "127.0.0.1", 0, authorities.append)
    webhook.start()
    try:
        _until(lambda: webhook.registered, 10.0)
        context = ssl.create_default_context(cadata=authorities[-1].decode())
        bodies = [_review(pod_clique_set(f"s{number}", f"t{number % topologies}")) for number in range(requests)]
        with httpx2.Client(verify=context, trust_env=False, timeout=30) as client:

            def decided(body: bytes) -> float:
                begun = time.perf_counter()
                client.post(webhook.url, content=body).raise_for_status()
                return (time.perf_counter() - begun) * 1e3

            for body in bodies[:50]:
                decided(body)
            times = [decided(body) for body in bodies]
            with ThreadPoolExecutor(_CLIENTS) as pool:
                begun = time.perf_counter()
                list(pool.map(decided, bodies))
                rate = len(bodies) / (time.perf_counter() - begun)
    finally:
        webhook.stop()
    parts = quantiles(times, n=100)
    return Decisions(topologies, requests, parts[49], parts[98], rate)


def cluster_costs(lab: Lab, topologies: int, sets: int) -> ClusterCosts:
    """Measure on a cluster that has the kinds: from nothing, after a restart, and for one changed level."""
    for number in range(topologies):
        lab.api.create(topology(f"t{number}"))
    made = [pod_clique_set(f"s{number}", f"t{number % topologies}") for number in range(sets)]
    lab.api.each(lab.api.create, made)
    before = _memory_mb()
    with _operating(lab) as operator:
        begun = time.perf_counter()
        lab.wait(lambda: _told(lab, "False") == sets, _PATIENCE_S, "every set has its condition")
        first_s = time.perf_counter() - begun
        _until(lambda: _idle(operator), _PATIENCE_S)
        memory_mb = _memory_mb() - before
    with _operating(lab) as operator:
        begun = time.perf_counter()
        _until(lambda: operator.leads and _reconciled(operator) >= sets + topologies and _idle(operator), _PATIENCE_S)
        _until(lambda: not _working(operator), _PATIENCE_S)
        restart_s, restart_writes, restart_reads = time.perf_counter() - begun, _writes(operator), _reads(operator)
        changed = len(range(0, sets, topologies))
        begun = time.perf_counter()
        lab.apply(topology("t0", "zone", "host"))
        lab.wait(lambda: _told(lab, "True") == changed, _PATIENCE_S, "the users have the condition")
        change_s = time.perf_counter() - begun
        lab.wait(lambda: _followed(lab, "t0"), _PATIENCE_S, "the scheduler has the new levels")
        # Its status is seen before the write of it is counted.
        _until(lambda: not _working(operator), _PATIENCE_S)
        change_writes, change_reads = _writes(operator) - restart_writes, _reads(operator) - restart_reads
    return ClusterCosts(
        topologies, sets, first_s, restart_s, restart_writes, change_s, change_writes, change_reads, changed, memory_mb
    )


def topology(name: str, *kept: str) -> Object:
    """Return a topology with some of the levels, all where none is named."""
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS if not kept or domain in kept]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }


def pod_clique_set(name: str, topology_name: str) -> Object:
    """Return a set that requires a rack of a topology."""
    container = {"name": "main", "image": "registry.example.com/main:1", "resources": {"limits": {"nvidia.com/gpu": 4}}}
    pod = {"schedulerName": "kai-scheduler", "containers": [container]}
    clique = {"name": "work", "spec": {"roleName": "work", "replicas": 4, "podSpec": pod}}
    constraint = {"topologyName": topology_name, "pack": {"required": "rack"}}
    labels = {"kai.scheduler/queue": "default"}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"replicas": 1, "template": {"cliques": [clique], "topologyConstraint": constraint}},
    }


def open_definition(kind: ObjectKind, *versions: str) -> dict[str, Any]:
    """Return a definition of a kind of Grove's or Dynamo's that admits any content, so that only rules refuse."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = [
        {
            "name": version,
            "served": True,
            "storage": index == 0,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for index, version in enumerate(versions)
    ]
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": served},
    }


@contextmanager
def _operating(lab: Lab) -> Iterator[Operator]:
    os.environ["KUBECONFIG"] = str(lab.kubeconfig)
    with Operator(OperatorSettings()) as operator:
        yield operator


def _review(manifest: Object) -> bytes:
    kind = {"kind": manifest["kind"], "group": "grove.io"}
    request = {"uid": "1", "operation": "CREATE", "kind": kind, "object": manifest}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def _told(lab: Lab, status: str) -> int:
    """Return how many sets have a condition of a status."""
    found = [(each.get("status") or {}).get("conditions") or [{}] for each in lab.objects("podcliquesets")]
    return sum(one[0].get("status") == status for one in found)


def _followed(lab: Lab, name: str) -> bool:
    """Return whether the present levels of a topology were carried out."""
    found = lab.get("clustertopologies", name) or {"metadata": {}}
    return bool((found.get("status") or {}).get("observedGeneration") == found["metadata"].get("generation"))


def _sum(operator: Operator, name: str, accepted: Callable[[dict[str, str]], bool] = lambda _: True) -> float:
    return sum(
        sample.value
        for metric in operator.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == name and accepted(sample.labels)
    )


def _writes(operator: Operator) -> int:
    """Return the requests that wrote something; renewals of the lease are part of no change."""
    name = "coterie_operator_api_requests_total"
    return int(_sum(operator, name, lambda labels: labels["verb"] in _WRITES and labels["kind"] != "Lease"))


def _reads(operator: Operator) -> int:
    """Return the requests that read something, apart from the lease and from watches."""
    name = "coterie_operator_api_requests_total"
    return int(_sum(operator, name, lambda labels: labels["verb"] in _READS and labels["kind"] != "Lease"))


def _reconciled(operator: Operator) -> int:
    return int(_sum(operator, "coterie_operator_reconciliations_total"))


def _idle(operator: Operator) -> bool:
    return _sum(operator, "coterie_operator_queue_depth") == 0


def _working(operator: Operator) -> bool:
    # SLF001: users of an operator have no use for it.
    return any(controller.queue.taken for controller in operator._controllers)  # noqa: SLF001


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _until(condition: Callable[[], bool], longest_s: float) -> None:
    deadline = time.monotonic() + longest_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the operator has not come to rest")
        time.sleep(0.05)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the tables, and write JSON where it is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench operator", description=__doc__)
    parser.add_argument("--topologies", type=int, default=200, help="topologies of the cluster")
    parser.add_argument("--sets", type=int, default=2000, help="PodCliqueSets of the cluster")
    parser.add_argument("--requests", type=int, default=2000, help="decisions of the webhook")
    parser.add_argument("--no-lab", action="store_true", help="leave out what needs a cluster")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    log_as_json()  # to standard error, apart from the results
    say("decisions")
    few, many = decisions(1, options.requests), decisions(1000, options.requests)
    costs = None
    if not options.no_lab:
        with Lab(compute_domain=False) as lab:
            lab.apply([*definitions(), open_definition(POD_CLIQUE_SET, "v1alpha1")])
            kinds = {"clustertopologies", "podcliquesets"}
            lab.wait(lambda: kinds <= {each.plural for each in lab.api.resources()}, 60, "the kinds are served")
            say(f"{options.topologies} topologies, {options.sets} sets")
            costs = cluster_costs(lab, options.topologies, options.sets)
    sys.stdout.write(_report(few, many, costs))
    if options.json:
        found = {"decisions": [asdict(few), asdict(many)], "cluster": asdict(costs) if costs else None}
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def _report(few: Decisions, many: Decisions, costs: ClusterCosts | None) -> str:
    rows = [
        (
            "decision at 1,000 topologies, median",
            f"{many.median_ms:.1f} ms",
            f"{many.median_ms / few.median_ms:.2f} x of 1",
        ),
        ("decision at 1,000 topologies, p99", f"{many.p99_ms:.1f} ms", "goal 50 ms"),
        ("decisions per second, 4 clients", f"{many.per_second:.0f}", ""),
    ]
    if costs:
        rows += [
            ("first start", f"{costs.first_s:.1f} s", f"{costs.topologies} topologies, {costs.sets} sets"),
            ("restart", f"{costs.restart_s:.1f} s", f"{costs.restart_writes} writes"),
            (
                "one changed level",
                f"{costs.change_s:.1f} s",
                f"{costs.change_writes} writes and {costs.change_reads} reads for {costs.changed} sets",
            ),
            ("memory at rest", f"{costs.memory_mb:.0f} MB", "more than before the operator"),
        ]
    return table("The operator", ("what", "measured", "against"), iter(rows))
