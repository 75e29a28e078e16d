"""Nodes that run containers, beside nodes that KWOK simulates."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import IMAGE, Lab, nodes
from tests.backends.local.builders import asleep
from tests.lab.gangs import pod as gang_pod
from tests.lab.gangs import snapshot

pytestmark = pytest.mark.usefixtures("real_nodes_possible")

RACK = "example.com/rack"
CLUSTER = f"""
topology_keys: [{{key: rack, label: {RACK}}}]
nodes:
- {{name: r1-n1, gpu: 8, cpu: 64, memory: 1Ti, domains: {{rack: r1}}, labels: {{disk: nvme}}}}
- {{name: r1-n2, gpu: 8, cpu: 64, memory: 1Ti, domains: {{rack: r1}}}}
- {{name: r2-n1, gpu: 8, cpu: 64, memory: 1Ti, domains: {{rack: r2}}}}
- {{name: r2-n2, gpu: 8, cpu: 64, memory: 1Ti, domains: {{rack: r2}}}}
pods:
- {{name: here-already, node: r1-n1, gpu: 1, cpu: 1, memory: 1Gi}}
"""


@pytest.fixture(scope="module")
def real(real_nodes_possible: None) -> Iterator[Lab]:  # noqa: ARG001 - it skips the tests
    """Two real nodes in a rack, and two that KWOK simulates in another."""
    with Lab(real_nodes=2, compute_domain=False) as lab:
        nodes.add(lab, snapshot(CLUSTER))
        lab.queue("default")
        topology = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "racks"}}
        lab.apply({**topology, "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}})
        yield lab


@pytest.fixture(autouse=True)
def _no_pods(real: Lab) -> Iterator[None]:
    """Begin and end each test without pods of its own."""
    yield
    for kind in ("pods", "persistentvolumeclaims", "persistentvolumes", "podgroups.scheduling.run.ai"):
        for each in real.objects(kind):
            if each["metadata"]["name"] != "here-already":
                real.api.delete(kind, each["metadata"]["name"], grace=0)
    real.wait(lambda: len(real.objects("pods")) <= 1, 30, "the pods are gone")


def _pod(name: str, script: str, node: str = "r1-n1", **spec: Any) -> dict[str, Any]:
    limits = {"memory": "64Mi", "cpu": "1"}
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", script], "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def _ended(lab: Lab, name: str) -> dict[str, Any]:
    def terminated() -> dict[str, Any]:
        found = (lab.get("pod", name) or {}).get("status", {}).get("containerStatuses") or [{}]
        return dict(found[0].get("state", {}).get("terminated") or {})

    return dict(lab.wait(terminated, 40, f"{name} ends"))


def _running(lab: Lab, name: str) -> None:
    def runs() -> bool:
        found = (lab.get("pod", name) or {}).get("status", {}).get("containerStatuses") or [{}]
        return "running" in found[0].get("state", {})

    lab.wait(runs, 40, f"{name} runs")


def test_nodes_are_as_the_cluster_file_says(real: Lab) -> None:
    assert list(real.real_nodes) == ["r1-n1", "r1-n2"]
    found = {node["metadata"]["name"]: node for node in real.objects("nodes")}
    assert len(found) == 4
    first = found["r1-n1"]
    assert first["metadata"]["labels"].items() >= {RACK: "r1", "disk": "nvme", "coterie.dev/lab-real": "true"}.items()
    offered = {key: first["status"]["allocatable"][key] for key in ("nvidia.com/gpu", "cpu", "memory")}
    assert offered == {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1Ti"} or offered["memory"] == str(1 << 40)
    assert first["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert not any(each["spec"].get("taints") for each in found.values())
    assert "coterie.dev/lab-real" not in found["r2-n1"]["metadata"]["labels"]
    assert real.kubectl("exec", "here-already", "--", "echo", "runs").strip() == "runs"


def test_a_gang_that_kai_places_really_runs(real: Lab) -> None:
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {
            "queue": "default",
            "minMember": 2,
            "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": RACK},
        },
    }
    pods = [gang_pod("gang", f"worker-{index}", gpus=7) for index in range(2)]
    for index, each in enumerate(pods):
        each["spec"]["nodeSelector"] = {"coterie.dev/lab-real": "true"}
        each["spec"]["containers"][0] |= {
            "image": IMAGE,
            "command": ["sh", "-c", f"echo worker {index}; exit {7 * index}"],
        }
    real.apply([group, *pods])
    assert [_ended(real, f"worker-{index}")["exitCode"] for index in range(2)] == [0, 7]
    assert real.kubectl("logs", "worker-1") == "worker 1\n"
    pods = real.objects("pods", selector="kai.scheduler/queue=default")
    assert {each["spec"]["nodeName"] for each in pods} == {"r1-n1", "r1-n2"}

    def phases() -> set[str]:
        return {each["status"]["phase"] for each in real.objects("pods", selector="kai.scheduler/queue=default")}

    real.wait(lambda: phases() == {"Succeeded", "Failed"}, 30, "the pods have ended")


def test_logs_are_followed_while_a_task_writes_them(real: Lab) -> None:
    real.api.create(_pod("talks", "echo first; until [ -e /go ]; do sleep 0.05; done; echo last"))
    _running(real, "talks")
    command = [str(real.binary("kubectl")), f"--kubeconfig={real.kubeconfig}", f"--cache-dir={real.folder / 'cache'}"]
    with subprocess.Popen([*command, "logs", "-f", "talks"], stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        killer = threading.Timer(240, follower.kill)
        killer.start()
        assert follower.stdout.readline() == "first\n"
        real.kubectl("exec", "talks", "--", "touch", "/go")
        assert follower.stdout.read() == "last\n"
        killer.cancel()
    assert follower.returncode == 0


def test_a_folder_of_the_machine_is_a_workspace_for_pods_of_all_nodes(real: Lab, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("42\n", encoding="utf-8")
    real.apply(nodes.workspace("work", tmp_path))
    volume = {"volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]}
    for name, node, script in (
        ("writer", "r1-n1", "cat /work/input > /work/output"),
        ("reader", "r1-n2", "until [ -s /work/output ]; do sleep 0.05; done; cat /work/output"),
    ):
        pod = _pod(name, script, node, **volume)
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
        real.api.create(pod)
    assert _ended(real, "reader")["exitCode"] == 0
    assert real.kubectl("logs", "reader") == "42\n"
    assert (tmp_path / "output").read_text(encoding="utf-8") == "42\n"


def test_pods_of_different_nodes_reach_each_other(real: Lab) -> None:
    real.api.create(_pod("server", "echo over there | nc -l -p 8000", "r1-n1"))
    _running(real, "server")
    server = real.get("pod", "server")
    assert server is not None
    # What it says while nobody listens yet is part of the log as well.
    script = f"until nc {server['status']['podIP']} 8000 < /dev/null 2> /dev/null; do sleep 0.1; done"
    real.api.create(_pod("client", script, "r1-n2"))
    assert _ended(real, "client")["exitCode"] == 0
    assert real.kubectl("logs", "client") == "over there\n"


def test_a_task_that_takes_too_much_memory_is_killed(real: Lab) -> None:
    real.api.create(_pod("greedy", "exec tail /dev/zero"))
    end = _ended(real, "greedy")
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)


def test_an_image_that_is_not_there_is_told(real: Lab) -> None:
    pod = _pod("absent", "true")
    pod["spec"]["containers"][0]["image"] = "coterie.dev/absent:1"
    real.api.create(pod)

    def waits() -> str:
        found = (real.get("pod", "absent") or {}).get("status", {}).get("containerStatuses") or [{}]
        return str(found[0].get("state", {}).get("waiting", {}).get("reason", ""))

    real.wait(lambda: waits() in {"ErrImagePull", "ImagePullBackOff"}, 60, "the pull fails")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done", 3),
        ("trap '' TERM; echo ready; while :; do sleep 0.1; done", 137),
    ],
    ids=["obeys", "ignores"],
)
def test_a_deleted_task_is_told_to_end_and_killed_after_its_grace(real: Lab, script: str, code: int) -> None:
    held = _pod("stubborn", script, terminationGracePeriodSeconds=2)
    held["metadata"]["finalizers"] = ["example.com/test"]
    real.api.create(held)
    real.wait(lambda: real.kubectl("logs", "stubborn", check=False) == "ready\n", 40, "the task listens")
    real.api.delete("pod", "stubborn")
    assert _ended(real, "stubborn")["exitCode"] == code
    real.api.patch("pod", "stubborn", {"metadata": {"finalizers": None}})
    real.wait(lambda: real.get("pod", "stubborn") is None, 30, "the pod goes")


def test_a_node_is_stopped_and_brought_back(real: Lab) -> None:
    node = real.real_nodes["r1-n2"]
    real.api.create(_pod("victim", "exec sleep 987654", "r1-n2", restartPolicy="Always"))
    _running(real, "victim")
    assert asleep("987654")
    node.stop()
    assert not asleep("987654")
    found = real.get("node", "r1-n2")
    assert found is not None
    assert [each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready"] == ["Unknown"]
    assert {each["key"] for each in found["spec"]["taints"]} == {"node.kubernetes.io/unreachable"}
    _running(real, "here-already")
    node.start()
    found = real.get("node", "r1-n2")
    assert found is not None
    assert not found["spec"].get("taints")
    assert found["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    real.wait(lambda: asleep("987654"), 40, "the container runs again")


def test_a_node_is_cordoned_drained_and_relabelled(real: Lab) -> None:
    real.api.create(_pod("moves", "exec sleep 1000", "r1-n2"))
    _running(real, "moves")
    real.kubectl("drain", "r1-n2", "--force", "--timeout=180s")
    assert real.get("pod", "moves") is None
    found = real.get("node", "r1-n2")
    assert found is not None
    assert found["spec"]["unschedulable"] is True
    real.kubectl("uncordon", "r1-n2")
    real.kubectl("label", "node", "r1-n2", "--overwrite", f"{RACK}=r3")
    real.real_nodes["r1-n2"].stop()
    real.real_nodes["r1-n2"].start()
    found = real.get("node", "r1-n2")
    assert found is not None
    assert found["metadata"]["labels"][RACK] == "r3", "a node that comes back keeps what it was told"
    real.kubectl("label", "node", "r1-n2", "--overwrite", f"{RACK}=r1")


def test_two_labs_with_real_nodes_do_not_meet(real: Lab, make_lab: Callable[..., Lab]) -> None:
    other = make_lab(real_nodes=1, schedulers=(), compute_domain=False)
    nodes.add(other, snapshot("nodes: [{name: r1-n1}]\npods: [{name: there, node: r1-n1}]"))
    assert other.kubectl("exec", "there", "--", "hostname").strip() == "there"
    other.stop()
    assert real.kubectl("exec", "here-already", "--", "hostname").strip() == "here-already"


def test_a_reset_takes_real_nodes_away_and_new_ones_can_be_added(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab(real_nodes=1, schedulers=(), compute_domain=False)
    for name in ("first", "second"):
        nodes.add(lab, snapshot(f"nodes: [{{name: {name}}}]\npods: [{{name: pod-{name}, node: {name}}}]"))
        assert list(lab.real_nodes) == [name]
        lab.reset()
        assert lab.objects("nodes") == []
        assert not lab.real_nodes
