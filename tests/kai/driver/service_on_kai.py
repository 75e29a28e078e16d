"""A service whose pool is a lab, and the objects that it leaves there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from lab import Lab, nodes
from tests.eventually import eventually
from tests.lab.gangs import snapshot

Json = dict[str, Any]

# The label of NVLink cliques, of which the lab makes channels for nodes.
ZONE, RACK = "topology.kubernetes.io/zone", "nvidia.com/gpu.clique"
CLUSTER = f"""
topology_keys: [{{key: zone, label: {ZONE}}}, {{key: rack, label: {RACK}}}]
nodes:
- {{name: r1-n1, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r1}}}}
- {{name: r1-n2, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r1}}}}
- {{name: r2-n1, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r2}}}}
- {{name: r2-n2, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r2}}}}
"""
CONFIG = f"""
backends:
  lab: {{scheduler: kai, namespace: default}}
pools:
  gb200:
    backend: lab
    nvlink: NVLINK
    topology_keys:
    - {{key: zone, label: {ZONE}}}
    - {{key: rack, label: {RACK}}}
    gpus: {{guarantee: 8, limit: 64, weight: 2}}
"""
OWN = "app.kubernetes.io/managed-by=coterie"
KINDS = ("pods", "podgroups.scheduling.run.ai", "computedomains", "configmaps", "secrets", "services")
LIMIT_S = 90.0


class KaiService:
    """A service that runs, its lab, and short ways to what a test asks of both."""

    def __init__(self, service: Service, lab: Lab) -> None:
        self.service, self.lab = service, lab

    def submit(self, submission: Submission) -> str:
        """Submit a workflow and return its id."""
        return str(self.service.submit(submission)["id"])

    def status(self, ident: str) -> str:
        """Return the status of a workflow."""
        return str(self.service.workflow(ident)["status"])

    def tasks(self, ident: str) -> dict[str, Json]:
        """Return the tasks of a workflow, by name."""
        return {task["name"]: task for group in self.service.workflow(ident)["groups"] for task in group["tasks"]}

    def running(self, ident: str, count: int) -> None:
        """Wait until so many tasks run."""

        def run() -> bool:
            return [task["status"] for task in self.tasks(ident).values()].count("RUNNING") == count

        self.lab.wait(run, LIMIT_S, f"{count} tasks of {ident} run")

    def finished(self, ident: str) -> str:
        """Wait until a workflow is cleaned up, and return its status."""
        self.lab.wait(lambda: self.service.store.workflow(ident).finished, LIMIT_S, f"{ident} is finished")
        return self.status(ident)

    def end(self, ident: str, task: str, code: int = 0) -> None:
        """End the pod of a task that KWOK simulates."""
        (pod,) = self.pods(ident, task)
        notes = {"coterie.dev/lab-exit-code": str(code), "coterie.dev/lab-runs-for": "0s"}
        self.lab.api.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": notes}}, "default")

    def pods(self, ident: str, task: str = "") -> list[Json]:
        """Return the pods of a workflow, or of one task."""
        selector = f"coterie.dev/workflow={ident}" + (f",coterie.dev/task={task}" if task else "")
        return self.lab.objects("pods", selector=selector)

    def events(self, ident: str) -> list[Json]:
        """Return the events of a workflow."""
        return list(self.service.events(0, ident))

    def left(self) -> dict[str, list[str]]:
        """Return the names of all objects of workflows in the lab."""
        found = {kind: [one["metadata"]["name"] for one in self.lab.objects(kind, selector=OWN)] for kind in KINDS}
        return {kind: names for kind, names in found.items() if names}

    def problems(self) -> str:
        """Return all problems of the service as one text."""
        return " | ".join(each.message for each in self.service._problems.all())


def settings(folder: Path, *, nvlink: bool = False, config: str = CONFIG) -> Settings:
    """Return the settings of a service on the lab."""
    folder.mkdir(exist_ok=True)
    file = folder / "coterie.yaml"
    file.write_text(config.replace("NVLINK", str(nvlink).lower()), encoding="utf-8")
    return Settings(store=str(folder / "store.db"), state=folder / "state", config=file, poll_s=0.05, grace_s=1.0)


@contextmanager
def serving(lab: Lab, found: Settings) -> Iterator[KaiService]:
    """Run a service until the end of the block, connected to its cluster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(lab.kubeconfig))
        with Service(found) as service:
            here = KaiService(service, lab)
            eventually(lambda: not service._catalog().unreached, "the cluster is known")
            yield here


def add_nodes(lab: Lab, cluster: str = CLUSTER) -> None:
    """Add the nodes of a cluster file to the lab."""
    nodes.add(lab, snapshot(cluster))
