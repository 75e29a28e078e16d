"""The life of a lab: start, use, reset, stop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.folders import new_folder
from lab.process import started_at

from lab import Lab, LabError, TimeoutExpiredError, nodes
from tests.eventually import eventually
from tests.lab.gangs import phases, prepare, snapshot, two_models, two_zones

ROOT = Path(__file__).parents[2]


def test_labs_side_by_side_do_not_meet_and_leave_nothing(lab: Lab, make_lab: Callable[..., Lab]) -> None:
    other = make_lab(compute_domain=False)
    nodes.add(lab, snapshot("nodes: [{name: here}]"))
    nodes.add(other, snapshot("nodes: [{name: there}]"))
    assert [node["metadata"]["name"] for node in lab.objects("nodes")] == ["here"]
    assert [node["metadata"]["name"] for node in other.objects("nodes")] == ["there"]
    folder, pids = other.folder, [program.pid for program in other.programs.values()]
    assert len(pids) == 6
    other.stop()
    assert not folder.exists()
    assert [started_at(pid) for pid in pids] == [None] * 6
    assert lab.get("node", "here") is not None


def test_programs_end_with_a_parent_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys, time\n"
        "from lab import Lab\n"
        "lab = Lab(schedulers=(), compute_domain=False)\n"
        "lab.start()\n"
        "print(lab.folder, *(program.pid for program in lab.programs.values()), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        folder, *pids = child.stdout.readline().split()
        marks = {int(pid): started_at(int(pid)) for pid in pids}
        assert len(marks) == 4
        assert all(marks.values())
        child.kill()
    eventually(lambda: all(started_at(pid) is None for pid in marks))
    assert Path(folder).parent == tmp_path
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert new_folder().exists()
    assert not Path(folder).exists()


def test_a_reset_leaves_an_empty_cluster_that_works(lab: Lab) -> None:
    for _ in range(2):
        prepare(lab, two_zones())
        lab.apply(two_models("train"))
        lab.wait(lambda: phases(lab) == {"Running"}, what="the gang runs")
        held = {"metadata": {"name": "held", "namespace": "default", "finalizers": ["example.com/nobody"]}}
        lab.api.create({"apiVersion": "v1", "kind": "ConfigMap", **held})
        lab.reset()
        for kind in (
            "nodes",
            "pods",
            "podgroups.scheduling.run.ai",
            "bindrequests",
            "topologies",
            "queues",
            "resourceslices",
        ):
            assert lab.objects(kind) == [], kind
        assert lab.get("configmap", "held") is None


def test_a_service_account_may_do_what_rbac_allows(lab: Lab) -> None:
    kubeconfig = lab.kubeconfig_for("reader", "crew")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    lab.apply(
        [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": "read", "namespace": "crew"},
                "rules": rules,
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "read", "namespace": "crew"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"},
                "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "crew"}],
            },
        ]
    )
    as_reader = f"--kubeconfig={kubeconfig}"
    lab.wait(lambda: lab.kubectl("auth", "can-i", "list", "pods", as_reader, check=False).strip() == "yes")
    assert lab.kubectl("auth", "can-i", "delete", "pods", as_reader, check=False).strip() == "no"
    assert lab.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", as_reader) == (
        "system:serviceaccount:crew:reader"
    )


def test_grove_kinds_can_be_defined_and_their_objects_go_with_a_reset(lab: Lab) -> None:
    lab.define_grove()
    lab.define_grove()
    topology = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "racks"}}
    lab.api.create({**topology, "spec": {"levels": [{"domain": "rack", "key": "topology.kubernetes.io/rack"}]}})
    assert lab.get("ClusterTopologyBinding", "racks") is not None
    lab.reset()
    assert lab.objects("clustertopologybindings.grove.io") == []


def test_waiting_in_vain_shows_what_is_known(lab: Lab) -> None:
    prepare(lab, two_zones())
    lab.apply(two_models("too-large", size=5))
    lab.wait(lambda: any(event["reason"] == "Unschedulable" for event in lab.objects("events")))
    with pytest.raises(TimeoutExpiredError) as raised:
        lab.wait(lambda: phases(lab) == {"Running"}, 0.1, "the gang runs")
    text = str(raised.value)
    assert "not within 0.3 s: the gang runs" in text
    assert "default/too-large-model-1-0: Pending on no node" in text
    assert "Unschedulable" in text
    assert "kai-scheduler:" in text


def test_a_program_that_ends_is_told_at_once_and_can_be_started_again(make_lab: Callable[..., Lab]) -> None:
    own = make_lab(schedulers=(), compute_domain=False)
    kwok = own.programs["kwok"]
    subprocess.run(["kill", "-9", str(kwok.pid)], check=True)  # noqa: S607 - wherever it is
    with pytest.raises(LabError, match=r"kwok ended \(signal SIGKILL\)"):
        own.wait(lambda: False, 20, "nothing")
    kwok.stop()
    kwok.start()
    nodes.add(own, snapshot("nodes: [{name: n1}]\npods: [{name: p, node: n1}]"))


def test_a_start_that_fails_keeps_logs_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lab = Lab(kai_actions="no-such-action", compute_domain=False)
    with pytest.raises(LabError, match="kai-scheduler ended") as raised:
        lab.start()
    assert lab.kept_logs is not None
    assert str(lab.kept_logs) in raised.value.hint
    assert (lab.kept_logs / "kai-scheduler.log").stat().st_size > 0
    assert not any(program.running for program in lab.programs.values())
    assert [path.name for path in tmp_path.glob("coterie-lab-*") if path.name.startswith("coterie-lab-logs")] == [
        lab.kept_logs.name
    ]
