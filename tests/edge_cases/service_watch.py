"""A service for edge cases: nodes that change one by one, a clock that can be moved, and conditions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coterie.errors import Conflict
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import WorkflowQuery
from tests.eventually import eventually
from tests.service.running_service import CONFIG, ServiceFolder, single, task, workflow

Json = dict[str, Any]
PATIENCE_S = 60.0
FOREVER = "sleep 600"
LEVELS = """topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
"""


@dataclass
class WatchedService:
    """A folder in which a service runs, its nodes of four GPUs each, and its clock.

    A node's name begins with its rack: "r1-n1". What else a node says stands beside its name, as in {"r1-n1": "ready:
    false"}.
    """

    folder: Path
    nodes: dict[str, str]
    config: str = CONFIG
    pods: str = ""
    ahead_s: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    probes: int = 0

    def place(self) -> ServiceFolder:
        return ServiceFolder(self.folder, self.config, self.text())

    def text(self) -> str:
        nodes = "".join(
            f"- {{name: {name}, domains: {{zone: a, rack: {name.partition('-')[0]}}}, gpu: 4, cpu: 32, memory: 256Gi"
            f"{', ' if more else ''}{more}}}\n"
            for name, more in self.nodes.items()
        )
        return f"{LEVELS}nodes:\n{nodes}{f'pods:{chr(10)}{self.pods}' if self.pods else ''}"

    def now(self) -> float:
        return time.time() + self.ahead_s

    def write(self, service: Service, **nodes: str | None) -> None:
        """Change nodes, named with "_" for "-", or remove those given as None; return when the service has looked."""
        for name, more in nodes.items():
            real = name.replace("_", "-")
            if more is None:
                self.nodes.pop(real, None)
            else:
                self.nodes[real] = more
        self.rewrite(service)

    def rewrite(self, service: Service) -> None:
        fresh = self.folder / "cluster.new"
        fresh.write_text(self.text(), encoding="utf-8")
        fresh.replace(self.folder / "cluster.yaml")
        self.seen(service)

    def seen(self, service: Service, pool: str = "main") -> None:
        """Return when the driver has made a whole turn after what was written."""
        self.probes += 1
        name = f"probe{self.probes}"
        service.submit(replace(workflow(name, {"g": [task("p", "true")]}, gpu=0), pool=pool, priority="HIGH"))
        ended(service, f"{name}-1")

    @contextmanager
    def serving(self) -> Iterator[Service]:
        """Run a service; nothing that it started is left."""
        settings = replace(self.place().settings(now=self.now, lease_s=1000.0), **self.changes)
        with Service(settings) as service:
            try:
                yield service
            finally:
                clear(service)


def racks(**sizes: int) -> dict[str, str]:
    """Return so many nodes in each rack."""
    return {f"{rack}-n{number}": "" for rack, size in sizes.items() for number in range(1, size + 1)}


def clear(service: Service) -> None:
    """End everything that runs or waits."""
    open_ones = [item["id"] for item in service.workflows(WorkflowQuery(finished=False), limit=1000)["items"]]
    for ident in open_ones:
        try:
            service.cancel(ident, force=True)
        except Conflict:
            continue
    for ident in open_ones:
        service.wait(ident, timeout_s=PATIENCE_S)


def until(service: Service, ident: str, wanted: Callable[[Json], bool]) -> Json:
    view = service.wait(ident, wanted, timeout_s=PATIENCE_S)
    assert wanted(view), view
    return view


def ended(service: Service, ident: str) -> Json:
    return until(service, ident, lambda view: bool(view["finished"]))


def running(service: Service, ident: str) -> Json:
    """Wait until all tasks of a workflow run."""
    return until(service, ident, lambda view: view["tasks"]["running"] == view["tasks"]["total"])


def waiting(service: Service, ident: str, reason: str = "") -> Json:
    """Wait until a workflow waits, for a reason if one is named."""
    return until(service, ident, lambda view: bool(view["waiting"]) and reason in view["waiting"]["reason"])


def gang(name: str, tasks: int, script: str = FOREVER, topology: str = "[{key: rack}]", rest: str = "") -> Submission:
    """Return a workflow of one group of whole nodes, in one rack unless it says otherwise; the lead is t0."""
    members = [task(f"t{number}", script, "" if number else "lead: true") for number in range(tasks)]
    return workflow(name, {"g": members}, topology=topology, rest=rest)


def tasks(view: Json) -> dict[str, Json]:
    return {one["name"]: one for group in view["groups"] for one in group["tasks"]}


def nodes(view: Json) -> dict[str, str]:
    return {name: one["node"] for name, one in tasks(view).items()}


def attempts(view: Json) -> dict[str, int]:
    return {name: one["attempt"] for name, one in tasks(view).items()}


def kinds(service: Service, ident: str) -> list[str]:
    return [event["kind"] for event in service.events(workflow=ident)]


__all__ = [
    "FOREVER",
    "WatchedService",
    "attempts",
    "clear",
    "ended",
    "eventually",
    "gang",
    "kinds",
    "nodes",
    "racks",
    "running",
    "single",
    "task",
    "tasks",
    "until",
    "waiting",
    "workflow",
]
