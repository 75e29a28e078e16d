"""Workload files on a real cluster: rendered, applied with kubectl, and followed until KAI has settled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.api import ApiError
from lab.control_plane import kai

from coterie.backends.shared.constraint_annotation import ANNOTATION
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.source import backend_cluster, read_topology_choice
from coterie.config.configuration import read_config
from coterie.planning.inputs import NO_TOPOLOGIES, all_topologies, pool_for, read_snapshot, with_topologies
from coterie.planning.load import WORKFLOW, read_documents, workload_for
from coterie.planning.plan import Plan, Planner
from coterie.sources import Snapshot
from coterie.sources.live import read_live
from lab import Lab, nodes
from tests.cli.command import ROOT, call
from tests.examples.test_examples import Example

Json = dict[str, Any]

SENTINEL = "coterie.test/sentinel"
CORDON = "node.kubernetes.io/unschedulable"


class Marker:
    """A pod on a node of its own. When one that was created last is bound, KAI has seen all that was there before."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._count = 0
        self._queue = add_queue(lab, "rounds")
        taint = {"key": SENTINEL, "effect": "NoSchedule"}
        room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        lab.api.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "sentinel", "labels": {SENTINEL: "true"}},
                "spec": {"taints": [taint]},
                "status": {"allocatable": room, "capacity": room, "conditions": [ready]},
            }
        )

    def settle(self) -> None:
        """Return when KAI has been through all its work and everything that it chose is bound."""
        # What KAI chose in the round of the first is chosen when it comes to the second.
        self._pass()
        self._pass()
        self._lab.wait(lambda: not self._chosen(), 60, "all chosen pods are bound")

    def _pass(self) -> None:
        name = f"sentinel-{self._count}"
        self._count += 1
        metadata = {"name": name, "namespace": "default", "labels": {"kai.scheduler/queue": self._queue}}
        group = {
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"queue": self._queue, "minMember": 1},
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "annotations": {"pod-group-name": name, "kai.scheduler/skip-podgrouper": "true"}},
            "spec": {
                "schedulerName": "kai-scheduler",
                "nodeSelector": {SENTINEL: "true"},
                "tolerations": [{"key": SENTINEL, "operator": "Exists"}],
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}],
            },
        }
        self._lab.api.create(pod)
        self._lab.api.create(group)
        self._lab.wait(lambda: _node(self._lab.get("pod", name)), 60, f"{name} is bound")

    def _chosen(self) -> set[tuple[str, str]]:
        waiting = {_identity(pod) for pod in self._lab.objects("pods") if not _node(pod)}
        requests = self._lab.objects("bindrequests")
        return waiting & {(each["metadata"]["namespace"], each["spec"]["podName"]) for each in requests}


@dataclass
class WorkloadLab:
    """A lab with the nodes of a cluster file, and one file of workloads that is brought onto it.

    `options` are those of `coterie plan` and `coterie render` alike.
    """

    lab: Lab
    file: Path
    cluster: Path
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rounds: Marker = field(init=False)

    def __post_init__(self) -> None:
        nodes.add(self.lab, self._written)
        add_queue(self.lab, "inference")
        self.rounds = Marker(self.lab)
        manifests = yaml.load_all(self.render(), Loader=yaml.CSafeLoader)
        for namespace in sorted({manifest["metadata"].get("namespace", "default") for manifest in manifests}):
            with suppress(ApiError):  # it may be there
                self.lab.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    @staticmethod
    def of(lab: Lab, example: Example) -> WorkloadLab:
        """Set the stage for an example, by the options of the command in its head."""
        _, *words = example.arguments
        options: dict[str, list[str]] = {}
        files: list[str] = []
        rest = iter(words)
        for word in rest:
            if word.startswith("--"):
                options.setdefault(word, []).append(next(rest))
            else:
                files.append(word)
        # Files beside the example's own declare topologies.
        beside = [name for name in files if ROOT / name != example.file]
        options |= {"--topology": beside} if beside else {}
        (cluster,) = options.pop("--cluster", [""])
        if not cluster:
            (config,), (pool,) = options["--config"], options["--pool"]
            source = ClusterOptions(config=str(ROOT / config), pool=pool)
            cluster = backend_cluster(source, read_config((ROOT / config).read_bytes(), config), None)
        return WorkloadLab(lab, example.file, ROOT / cluster, options)

    @property
    def _written(self) -> Snapshot:
        return read_snapshot(self.cluster.read_bytes(), str(self.cluster))

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        return live_snapshot(self.lab)

    def plans(self) -> list[Plan]:
        """Plan the workloads for KAI on the cluster as it is now."""
        snapshot = self.snapshot()
        documents = read_documents(self.file.read_bytes(), str(self.file), sets=self.options.get("--set", ()))
        config = self._config()
        chart = next((read_topology_choice(str(ROOT / name)) for name in self.options.get("--topology", ())), None)
        levels = chart or (None if config or documents.workloads[0].kind != WORKFLOW else self._written.topology)
        beside = documents.topologies or NO_TOPOLOGIES
        known = all_topologies(levels, snapshot, beside)
        planner = Planner(snapshot.cluster)
        pool = next(iter(self.options.get("--pool", ())), None)
        return [
            planner.plan(
                workload_for(
                    one,
                    replace(pool_for(config, pool, one.pool, levels, snapshot, beside), scheduler="kai"),
                    known,
                    configured=config is not None,
                )
            )
            for one in documents.workloads
        ]

    def _config(self) -> Any:
        name = next(iter(self.options.get("--config", ())), None)
        return read_config((ROOT / name).read_bytes(), name) if name else None

    def render(self, *more: str, live: bool = False) -> str:
        """Return what `coterie render` writes, for the cluster file or for the cluster as it runs."""
        options = [word for name, values in self.options.items() for value in values for word in (name, value)]
        source = "context:" if live else str(self.cluster)
        done = call("render", self.file, *options, "--cluster", source, *more, KUBECONFIG=str(self.lab.kubeconfig))
        assert done.code == 0, done.err
        self._server_side = "--server-side" in done.err
        return done.out

    def submit(self, *more: str) -> None:
        """Apply what is rendered, and what is rendered then, such as gangs that follow; return when KAI has settled."""
        self._apply(self.render(*more))
        self.proceed(*more)

    def proceed(self, *more: str) -> None:
        """Return when KAI has settled, and gangs that follow what runs now were applied as well."""
        self.rounds.settle()
        # What follows is bound to what runs; nothing follows a follower.
        if self._is_set and (text := self.render(*more, live=True)) != self._applied:
            self._apply(text)
            self.rounds.settle()

    def _apply(self, text: str) -> None:
        flags = ["--server-side"] if self._server_side else []
        self.lab.kubectl("apply", *flags, "-f", "-", input=text)
        self._applied = text

    @property
    def _is_set(self) -> bool:
        """Whether gangs may follow others, and the file itself says which levels there are."""
        documents = read_documents(self.file.read_bytes(), str(self.file), sets=self.options.get("--set", ()))
        return documents.workloads[0].kind != WORKFLOW

    def audit(self) -> dict[str, Json]:
        """Return what `coterie audit` finds, gang by gang, under the names that users know them by."""
        done = call("audit", "context:", "-o", "json", KUBECONFIG=str(self.lab.kubeconfig))
        assert done.code in {0, 6, 7}, done.err
        return {f"{gang['workload']}/{gang['group']}": gang for gang in json.loads(done.out)["gangs"]}

    def make_room(self) -> None:
        """Delete what holds the nodes, and add nodes where that is not enough."""
        own = {_identity(pod) for pod in self.gang_pods()}
        for pod in self.lab.objects("pods"):
            if _identity(pod) not in own and "pod-group-name" not in pod["metadata"].get("annotations", {}):
                name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                if pod["metadata"].get("finalizers"):
                    # Held by the lab, as a pod that is terminating; KAI would wait for its room for ever.
                    self.lab.api.patch("pods", name, {"metadata": {"finalizers": None}}, namespace)
                self.lab.api.delete("pods", name, namespace, grace=0)
        for node in self.lab.objects("nodes"):
            if node["spec"].get("unschedulable"):
                # No controller runs here that would take the taint of a cordon away with it.
                taints = [one for one in node["spec"].get("taints", ()) if one["key"] != CORDON]
                spec = {"unschedulable": False, "taints": taints}
                self.lab.api.patch("nodes", node["metadata"]["name"], {"spec": spec})
        for queue in self.lab.objects("queues"):
            self.lab.api.patch("queues", queue["metadata"]["name"], {"spec": {"resources": {"gpu": {"limit": -1}}}})
        if not all(one.decision.found for plan in self.plans() for one in plan.gangs):
            self._add_domain()

    def gang_pods(self) -> list[Json]:
        """Return the pods that Coterie rendered."""
        return self.lab.objects("pods", selector="app.kubernetes.io/managed-by=coterie")

    def _add_domain(self) -> None:
        """Add nodes like the largest one, enough for all tasks, that share a new domain of each level."""
        plans = self.plans()
        labels = {level.label for plan in plans for level in plan.workload.pool.topology.levels}
        listed = [node for node in self.lab.objects("nodes") if SENTINEL not in node["metadata"]["labels"]]
        model = max(listed, key=lambda node: int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)))
        for number in range(sum(len(one.gang.all_tasks()) for plan in plans for one in plan.gangs)):
            name = f"spare-{number}"
            own = {**dict.fromkeys(labels, "spare"), "kubernetes.io/hostname": name}
            self.lab.api.create(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": {**model["metadata"]["labels"], **own}},
                    "status": {key: model["status"][key] for key in ("allocatable", "capacity", "conditions")},
                }
            )

    def reported(self, gang: Json) -> bool:
        """Tell whether KAI has said of a gang that it cannot be scheduled."""
        group = self.lab.get("podgroups.scheduling.run.ai", gang["name"], gang["namespace"]) or {}
        return bool(group.get("status", {}).get("schedulingConditions"))


def live_snapshot(lab: Lab) -> Snapshot:
    """Return a cluster as `coterie audit context:` reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(lab.kubeconfig))
        return with_topologies(read_live("context:", gangs=True), "context:")


def add_queue(lab: Lab, name: str) -> str:
    """Add a queue that takes anything, below one of its own, and return its name."""
    for one in (kai.queue(f"{name}-parent"), kai.queue(name, f"{name}-parent")):
        lab.api.create(one)
    return name


def seen(lab: Lab, gang: Json) -> Iterator[tuple[list[list[str]], set[tuple[str, ...]]]]:
    """Yield each constraint of a gang with the domains of its pods, read from the raw objects."""
    group = lab.get("podgroups.scheduling.run.ai", gang["name"], gang["namespace"])
    assert group
    record = json.loads(group["metadata"]["annotations"][ANNOTATION])
    labels = [level["label"] for level in record["levels"]]
    keys = [level["key"] for level in record["levels"]]
    machines = {node["metadata"]["name"]: node["metadata"]["labels"] for node in lab.objects("nodes")}
    homes = {
        pod["metadata"]["labels"]["coterie.dev/task"]: machines[pod["spec"]["nodeName"]]
        for pod in lab.objects("pods", gang["namespace"])
        if pod["metadata"].get("annotations", {}).get("pod-group-name") == gang["name"] and pod["spec"].get("nodeName")
    }

    def below(found: Json) -> Iterator[str]:
        yield from (record["tasks"][number] for number in found.get("tasks", ()))
        for each in found.get("groups", ()):
            yield from below(each)

    def walk(found: Json, above: list[list[str]]) -> Iterator[tuple[list[list[str]], set[tuple[str, ...]]]]:
        path = [*above, [found["level"], found["group"]]]
        depth = keys.index(found["level"]) + 1
        yield path, {tuple(homes[task][label] for label in labels[:depth]) for task in below(found) if task in homes}
        for each in found.get("groups", ()):
            yield from walk(each, path)

    for found in record["groups"]:
        yield from walk(found, [])


def _identity(item: Json) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _node(pod: Json | None) -> str:
    return str(pod["spec"].get("nodeName", "")) if pod else ""
