"""Operators on a real API server: killed, with watches that are lost or behind, and without some of their kinds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.cluster.operator import open_definition
from lab.control_plane import readiness
from lab.programs import components
from lab.programs.build import build

from coterie.kube.errors import Expired
from coterie.kube.kinds import GRAPH_DEPLOYMENT, POD_CLIQUE_SET
from coterie.kube.watch import Batch
from coterie.operator.crds import definitions
from coterie.operator.watches import SharedWatch
from lab import Lab
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import beta
from tests.lab.gangs import CLIQUE, ZONE
from tests.operator.conftest import Operate, serves
from tests.operator.etcd import compact, restart
from tests.operator.forwarder import Forwarder, server_port
from tests.operator.topologies.test_topologies_on_lab import TOPOLOGY, condition, declared, entry, labels, reasons
from tests.operator.workloads.test_workloads_on_lab import here
from tests.operator.workloads.test_workloads_on_lab import told as said


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
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the operator's own address
        return str(answer.read().decode())


def leader(lab: Lab) -> str:
    lease = lab.get("leases.coordination.k8s.io", "coterie-operator")
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")


def test_another_replica_takes_over_within_seconds_and_a_former_leader_writes_nothing(
    cluster: Lab, tmp_path: Path
) -> None:
    with replica(cluster, tmp_path, "a") as first:
        address = told(first)
        cluster.wait(lambda: leader(cluster), 60, "the first leads")
        before = leader(cluster)
        cluster.apply(declared(ZONE))
        cluster.wait(lambda: condition(cluster)[0] == "False", 60, "it is followed")
        assert fetched(f"{address}/healthz") == "ok\n"
        assert fetched(f"{address}/readyz") == "ok\n"
        numbers = fetched(f"{address}/metrics")
        assert 'coterie_operator_topology_drift{kind="ClusterTopology",topology="racks"} 0.0' in numbers
        assert "coterie_operator_leader 1.0" in numbers
        assert 'coterie_operator_api_requests_total{code="201",kind="Topology",verb="post"} 1.0' in numbers
        with replica(cluster, tmp_path, "b") as second:
            assert told(second)
            # It stops in the middle of its work, and believes to lead when it goes on.
            first.send_signal(signal.SIGSTOP)
            cluster.apply(declared(ZONE, CLIQUE))
            cluster.wait(lambda: condition(cluster) == ("False", "InSync", 2), 60, "the second follows")
            assert leader(cluster) != before
            assert labels(cluster) == [ZONE, CLIQUE]
            assert reasons(cluster) == ["TopologyInSync"]
            version = (cluster.get("clustertopologies", "racks") or {})["metadata"]["resourceVersion"]
            first.send_signal(signal.SIGCONT)
            cluster.wait(lambda: "coterie_operator_leader 0.0" in fetched(f"{address}/metrics"), 60, "it sees that")
            assert (cluster.get("clustertopologies", "racks") or {})["metadata"]["resourceVersion"] == version

            first.kill()
            first.wait(60)
            second.terminate()
            assert second.wait(120) == 0
            assert leader(cluster) == ""


def test_watches_that_are_lost_for_longer_than_the_history_come_to_the_same_end(
    cluster: Lab, operate: Operate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired: list[str] = []
    made = Expired.__init__

    def counted(self: Expired, message: str, hint: str = "") -> None:
        expired.append(message)
        made(self, message, hint)

    monkeypatch.setattr(Expired, "__init__", counted)
    with Forwarder(server_port(cluster)) as way:
        operator = operate(cluster, way.kubeconfig(cluster, tmp_path))
        for each in (declared(ZONE), declared(ZONE, name="gone")):
            cluster.apply(each)
        cluster.wait(lambda: condition(cluster)[0] == condition(cluster, "gone")[0] == "False", 60, "both are followed")
        way.cut()
        cluster.api.delete("clustertopologies", "gone")
        cluster.api.delete(TOPOLOGY, "racks")
        cluster.apply([declared(ZONE, CLIQUE), declared(CLIQUE, name="new")])
        # Without its history, and with a new cache, the API server cannot say what has happened since.
        compact(cluster)
        restart(cluster)
        way.restore()

        cluster.wait(lambda: condition(cluster) == ("False", "InSync", 2), 60, "the changed one is followed")
        cluster.wait(lambda: condition(cluster, "new") == ("False", "InSync", 1), 60, "the new one is followed")
        cluster.wait(lambda: 'topology="gone"' not in operator.metrics.text().decode(), 60, "the old one is forgotten")
        cluster.wait(lambda: cluster.get(TOPOLOGY, "gone") is None, 60, "its resource is gone")
        assert (labels(cluster), labels(cluster, "new")) == ([ZONE, CLIQUE], [CLIQUE])
        assert reasons(cluster) == ["TopologyInSync"] * 3
        assert expired
        operator.__exit__()


def test_watches_that_are_behind_tell_nothing_that_is_over(
    workload_lab: Lab, operate: Operate, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = workload_lab
    lab.reset(120.0)
    open_, take = threading.Event(), SharedWatch._take
    open_.set()

    def delayed(self: SharedWatch, batch: Batch[dict[str, Any]]) -> None:
        if self.kind.name in {"Topology", "ClusterTopologyBinding"}:
            assert open_.wait(600)
        take(self, batch)

    monkeypatch.setattr(SharedWatch, "_take", delayed)
    operator = operate(lab, webhook="127.0.0.1:0", webhook_cleanup=True)
    lab.apply(declared(ZONE))
    lab.wait(lambda: condition(lab) == ("False", "InSync", 1), 60, "it is followed")
    lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
    open_.clear()
    try:
        # The resource is exchanged, and the watch still has the old levels.
        lab.apply(declared(ZONE, CLIQUE))
        lab.wait(lambda: condition(lab)[2] == 2, 60, "it is followed")
        # A set that is created together with its topology is admitted, and has its levels.
        lab.apply([topology("t"), here(packed("rack"))])
        lab.wait(lambda: said(lab, "podcliquesets", "set")[0] == "False", 60, "the set has its levels")
    finally:
        open_.set()
    lab.wait(lambda: condition(lab, "t", "clustertopologybindings")[0] == "False", 60, "the watch has caught up")

    assert condition(lab) == ("False", "InSync", 2)
    assert reasons(lab) == ["TopologyInSync"] * 2
    operator.__exit__()


def test_missing_kinds_are_told_and_noticed_when_they_appear(make_lab: Callable[..., Lab], operate: Operate) -> None:
    bare = make_lab(schedulers=(), compute_domain=False)
    operator = operate(bare)
    bare.wait(lambda: operator.problem() == "", 60, "it is ready without any of its kinds")
    bare.apply(definitions(beside_grove=True))
    bare.wait(lambda: serves(bare, "clustertopologies"), 60, "the kind is served")
    bare.apply(declared(ZONE))
    bare.wait(lambda: condition(bare)[:2] == ("True", "Drift"), 60, "the missing kind is told")
    assert "is not installed" in entry(bare)["message"]
    assert condition(bare)[2] == 0

    readiness.define(bare.api, build([components.KAI]).values())
    bare.wait(lambda: condition(bare) == ("False", "InSync", 1), 60, "it follows")
    assert [each["metadata"]["name"] for each in bare.objects(TOPOLOGY)] == ["racks"]

    # Grove's own definitions of its kinds; Dynamo's are not part of a lab.
    readiness.define(bare.api, build([components.GROVE]).values())
    bare.apply(open_definition(GRAPH_DEPLOYMENT, "v1beta1", "v1alpha1"))
    plurals = {"clustertopologybindings", POD_CLIQUE_SET.plural, GRAPH_DEPLOYMENT.plural}
    bare.wait(lambda: serves(bare, *plurals), 60, "the kinds are served")
    bare.apply([topology("t"), here(packed()), here(beta())])
    bare.wait(lambda: condition(bare, "t", "clustertopologybindings") == ("False", "InSync", 1), 60, "it follows")
    bare.wait(lambda: said(bare, POD_CLIQUE_SET.plural, "set")[0] == "False", 60, "the set is told")
    bare.wait(lambda: said(bare, GRAPH_DEPLOYMENT.plural, "chat")[0] == "True", 60, "the graph is told")
