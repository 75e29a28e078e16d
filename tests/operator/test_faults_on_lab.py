"""Operators on a real API server that is restarted, without KAI's kinds, with two replicas, and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.build import build

from coterie.operator.crds import definitions
from lab import Lab, components, readiness
from tests.lab.gangs import CLIQUE, ZONE
from tests.operator.conftest import Operate, serves
from tests.operator.test_topologies_on_lab import TOPOLOGY, condition, declared, entry, labels, reasons


@contextmanager
def replica(lab: Lab, folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run `coterie operator` as a process of its own; it is killed with the block."""
    log = folder / f"{name}.log"
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "coterie", "operator", "--listen", "127.0.0.1:0"],
            env={**os.environ, "KUBECONFIG": str(lab.kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """Return the address that an operator prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - the operator's own address
        return str(answer.read().decode())


def leader(lab: Lab) -> str:
    lease = lab.get("leases.coordination.k8s.io", "coterie-operator")
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")


def test_another_replica_takes_over_within_seconds_when_the_leader_is_killed(cluster: Lab, tmp_path: Path) -> None:
    with replica(cluster, tmp_path, "a") as first:
        address = told(first)
        cluster.wait(lambda: leader(cluster), 60, "the first leads")
        before = leader(cluster)
        with replica(cluster, tmp_path, "b") as second:
            assert told(second)
            cluster.apply(declared(ZONE))
            cluster.wait(lambda: condition(cluster)[0] == "False", 60, "it is followed")
            assert fetched(f"{address}/healthz") == "ok\n"
            assert fetched(f"{address}/readyz") == "ok\n"
            numbers = fetched(f"{address}/metrics")
            assert 'coterie_operator_topology_drift{kind="ClusterTopology",topology="racks"} 0.0' in numbers
            assert "coterie_operator_leader 1.0" in numbers
            assert 'coterie_operator_api_requests_total{code="201",kind="Topology",verb="post"} 1.0' in numbers

            first.kill()
            first.wait(10)
            cluster.apply(declared(ZONE, CLIQUE))
            cluster.wait(lambda: condition(cluster) == ("False", "InSync", 2), 60, "the second follows")
            assert leader(cluster) != before
            assert labels(cluster) == [ZONE, CLIQUE]
            assert reasons(cluster) == ["TopologyInSync"]

            second.terminate()
            assert second.wait(30) == 0
            assert leader(cluster) == ""


def test_a_restarted_api_server_and_changes_meanwhile_are_caught_up_with(cluster: Lab, operate: Operate) -> None:
    operate(cluster)
    cluster.apply(declared(ZONE))
    cluster.wait(lambda: condition(cluster)[0] == "False", 60, "it is followed")
    cluster.programs["kube-apiserver"].stop()
    cluster.programs["kube-apiserver"].start()
    cluster.wait(_answers(cluster), 60, "the API server is back")
    cluster.apply(declared(ZONE, CLIQUE))

    cluster.wait(lambda: condition(cluster) == ("False", "InSync", 2), 60, "it is followed again")
    assert labels(cluster) == [ZONE, CLIQUE]


def _answers(lab: Lab) -> Callable[[], bool]:
    def answers() -> bool:
        return lab.kubectl("get", "clustertopologies", "-o", "name", check=False).strip() != ""

    return answers


def test_missing_kinds_are_told_and_noticed_when_they_appear(make_lab: Callable[..., Lab], operate: Operate) -> None:
    bare = make_lab(schedulers=(), compute_domain=False)
    operator = operate(bare)
    bare.wait(lambda: operator.problem() == "", 60, "it is ready without any of its kinds")
    bare.apply(definitions())
    bare.wait(lambda: serves(bare, "clustertopologies"), 60, "the kind is served")
    bare.apply(declared(ZONE))
    bare.wait(lambda: condition(bare)[:2] == ("True", "Drift"), 60, "the missing kind is told")
    assert "is not installed" in entry(bare)["message"]
    assert condition(bare)[2] == 0

    readiness.define(bare.api, build([components.KAI]).values())
    bare.wait(lambda: condition(bare) == ("False", "InSync", 1), 60, "it follows")
    assert [each["metadata"]["name"] for each in bare.objects(TOPOLOGY)] == ["racks"]
