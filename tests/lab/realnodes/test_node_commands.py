"""`lab node` on a lab that runs by itself: a real node is stopped and brought back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab.api import Api
from lab.kubeconfig import read_kubeconfig
from lab.state import find_record

from lab import IMAGE
from tests.backends.local.builders import asleep
from tests.eventually import eventually
from tests.lab.lab_guard import ROOT, guarded

pytestmark = pytest.mark.usefixtures("real_nodes_possible")

SPAN = "987653"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "sleeper", "namespace": "default"},
    "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": IMAGE, "command": ["sleep", SPAN]}]},
}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Give a function that runs a command of the lab, as its users do under nohup."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lab", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with guarded(tmp_path / "state"):
            yield call
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_node_of_a_running_lab_is_stopped_and_brought_back(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{name: n1, gpu: 8}, {name: n2}]", encoding="utf-8")
    done = run("up", "--real-nodes", "1", "--cluster", str(cluster))
    assert done.returncode == 0, done.stderr
    record = find_record("lab")
    assert record is not None
    api = Api(*read_kubeconfig(record.kubeconfig))
    try:
        api.create(POD)
        eventually(lambda: asleep(SPAN), "the container does not run")
        (task,) = asleep(SPAN)
        status = Path(f"/proc/{task}/status").read_text("utf-8")
        assert "SigIgn:\t0000000000000000" in status, "the signals of a task do not depend on who started the lab"

        done = run("node", "stop", "n1")
        assert (done.returncode, done.stdout) == (0, 'node "n1" is stopped\n'), done.stderr
        assert asleep(SPAN) == []
        node = api.get("node", "n1") or {}
        assert [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"] == ["Unknown"]
        assert run("status").stdout.startswith('lab "lab" is running: 2 nodes, 1 pod\n')
        again = run("node", "stop", "n1")
        assert again.returncode == 1
        assert again.stderr.startswith('error: node "n1" is stopped already\nhint: ')

        done = run("node", "start", "n1")
        assert (done.returncode, done.stdout) == (0, 'node "n1" is back\n'), done.stderr
        node = api.get("node", "n1") or {}
        assert not node["spec"].get("taints")
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        eventually(lambda: asleep(SPAN), "the container does not run again")
        again = run("node", "start", "n1")
        assert again.stderr.startswith('error: node "n1" runs already\nhint: ')

        _kill_kubelet()
        assert run("status").returncode == 1
        done = run("node", "start", "n1")
        assert done.returncode == 0, done.stderr
        assert run("status").returncode == 0
    finally:
        api.close()
    played = run("node", "stop", "n2")
    assert (played.returncode, played.stderr) == (4, 'error: lab "lab" has no real node "n2"\nhint: Nodes are: n1.\n')
    done = run("down")
    assert done.returncode == 0, done.stderr
    assert asleep(SPAN) == []


def _kill_kubelet() -> None:
    record = find_record("lab")
    assert record is not None
    for process in record.processes:
        if process.name == "kubelet-n1":
            os.killpg(process.pid, signal.SIGKILL)
            eventually(lambda: not process.running, "the kubelet does not end")  # noqa: B023 - asked at once


def test_a_lab_that_is_not_there_has_no_nodes(run: Run) -> None:
    done = run("node", "stop", "n1")
    assert (done.returncode, done.stderr) == (4, 'error: there is no lab "lab"\nhint: None was started.\n')
