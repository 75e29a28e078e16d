"""A real node: a kubelet with a containerd of its own, that can be stopped and brought back."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.api import Api, Object
from lab.process import Program
from lab.realnodes import cgroups, containerd, kubelet
from lab.realnodes.leftovers import cgroup_prefix, identity
from lab.realnodes.namespaces import namespaces
from lab.realnodes.requirements import program

_START_S = 120.0
_FILE = "node.json"
_UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The lab that a real node is part of: where its files are, and how programs are started and waited for."""

    folder: Path
    kubeconfig: Path
    kubelet: Path
    images: Path
    api: Api
    run: Callable[[Program], None]
    wait: Callable[[Callable[[], Any], float, str], Any]
    tied: bool


class RealNode:
    """A node whose pods run; `wanted` is the node as the API would take it, `index` its place among real nodes."""

    def __init__(self, lab: Surroundings, wanted: Object, index: int, port: int) -> None:
        self.name: str = wanted["metadata"]["name"]
        self._lab, self._wanted = lab, wanted
        self._folder = _folders(lab.folder) / str(index)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / _FILE).write_text(json.dumps({"wanted": wanted, "index": index, "port": port}), "utf-8")
        self._cgroup = f"{cgroup_prefix(lab.folder)}{index}"
        self._containerd = containerd.write_configuration(self._folder, identity(lab.folder), index)
        self._kubelet = kubelet.write_configuration(self._folder, self._cgroup, port)
        self._namespaces = namespaces(self.name, self._folder, lab.folder / "logs", tied=lab.tied)
        self._programs: list[Program] = []

    def start(self) -> None:
        """Bring a stopped node back, and return when it is ready; labels and cordons stay as they are."""
        self.begin()
        self.join()
        self._wait_until_ready()
        node = self._object()
        self._patch({"spec": {"taints": _without(node, _UNREACHABLE, kubelet.UNINITIALIZED)}})
        self._offer()

    def begin(self) -> None:
        """Start containerd."""
        cgroups.create(self._cgroup)
        self._namespaces.open(self._lab.run)
        self._run("containerd", [str(program("containerd")), f"--config={self._containerd}"])

    def join(self) -> None:
        """Load the lab's images when containerd takes them, and start the kubelet."""
        lab = self._lab
        load = [str(program("ctr")), "-a", containerd.SOCKET, "-n", "k8s.io", "images", "import", str(lab.images)]
        lab.wait(lambda: self._succeeds(load), _START_S, f"containerd of {self.name} has the lab's images")
        self._run("kubelet", kubelet.command(lab.kubelet, self.name, self._folder, self._kubelet, lab.kubeconfig))

    def settle(self) -> None:
        """Wait until a new node is ready, and give it the labels, taints and resources that were wanted."""
        self._wait_until_ready()
        self._patch({"metadata": {"labels": self._wanted["metadata"]["labels"]}, "spec": self._wanted["spec"]})
        self._offer()

    def stop(self) -> None:
        """End kubelet, containerd and all containers at once, as when a machine loses its power.

        The API server is told what the node controller of a cluster would find out after a while.
        """
        self.end()
        self.report_unreachable()

    def report_unreachable(self) -> None:
        """Tell the API server that the node is gone."""
        node = self._object()
        conditions = [each for each in node["status"]["conditions"] if each["type"] != "Ready"]
        ready = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
        self._patch({"status": {"conditions": [*conditions, ready]}}, status=True)
        taints = [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        self._patch({"spec": {"taints": [*_without(node, _UNREACHABLE), *taints]}})

    def end(self) -> None:
        """End all processes of the node."""
        for each in reversed(self._programs):
            each.stop()
        self._programs.clear()
        self._namespaces.close()

    def remove(self) -> None:
        """End the node, and remove all that it kept."""
        self.end()
        cgroups.remove(self._cgroup)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, kind: str, command: list[str]) -> None:
        name = f"{kind}-{self.name}"
        started = Program(
            name, self._namespaces.inside(command), self._lab.folder / "logs" / f"{name}.log", tied=self._lab.tied
        )
        self._lab.run(started)
        self._programs.append(started)

    def _succeeds(self, command: list[str]) -> bool:
        # S603: the lab's own program.
        done = subprocess.run(self._namespaces.inside(command), capture_output=True, check=False)  # noqa: S603
        return done.returncode == 0

    def _wait_until_ready(self) -> None:
        self._lab.wait(self._is_ready, _START_S, f"{self.name} is ready")

    def _is_ready(self) -> bool:
        found = self._lab.api.get("node", self.name) or {}
        conditions = found.get("status", {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def _object(self) -> Object:
        return self._lab.api.get("node", self.name) or {"spec": {}, "status": {"conditions": []}}

    def _offer(self) -> None:
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}]
        offered = self._wanted["status"]["allocatable"]
        self._patch(
            {"status": {"addresses": addresses, "capacity": offered, "allocatable": offered}},
            status=True,
        )

    def _patch(self, body: Object, *, status: bool = False) -> None:
        self._lab.api.patch("node", self.name, body, status=status)


def stored_nodes(lab: Surroundings) -> dict[str, RealNode]:
    """Return the real nodes of a lab that another process has started, by name, as they were stored in its folder."""
    found = {}
    for file in sorted(_folders(lab.folder).glob(f"*/{_FILE}")):
        stored = json.loads(file.read_text("utf-8"))
        node = RealNode(lab, stored["wanted"], stored["index"], stored["port"])
        found[node.name] = node
    return found


def program_names(node: str) -> list[str]:
    """Return the names of the programs of a node, the one that holds its namespaces first."""
    return [f"{kind}-{node}" for kind in ("node", "containerd", "kubelet")]


def _folders(lab: Path) -> Path:
    return lab / "real-nodes"


def _without(node: Object, *keys: str) -> list[Object]:
    taints: Iterable[Object] = node["spec"].get("taints") or ()
    return [taint for taint in taints if taint["key"] not in keys]
