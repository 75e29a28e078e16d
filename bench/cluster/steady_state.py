"""A service on a large real cluster: its cost at rest, the time until it notices a lost pod, and its restart.

KWOK simulates the nodes and their kubelets; the API server and KAI are real. The service has a process of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import yaml

from bench.cluster.call_count import CallCount
from bench.timing import once, say
from coterie.library import read_cluster
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from coterie.store import WorkflowQuery
from lab import Lab, nodes

TASKS = 2
NODES_PER_RACK = 20
LEVELS = [{"key": "zone", "label": "example.com/zone"}, {"key": "rack", "label": "example.com/rack"}]
# Kubelets write the status of an unchanged node every five minutes.
HEARTBEAT_S = 300.0
_PATIENCE_S = 1800.0
_TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The processor time, the resident bytes and the calls of a service so far."""

    cpu_s: float
    resident: int
    calls: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RestUsage:
    """A service at rest: share of one processor, resident bytes, and calls per minute; and when it saw a lost pod."""

    nodes: int
    workflows: int
    cpu: float
    resident: int
    calls_per_minute: float
    noticed_s: float

    def __str__(self) -> str:
        cost = f"{100 * self.cpu:.1f} % of a processor, {self.resident / 1e6:.0f} MB"
        return (
            f"{self.nodes:,} nodes, {self.workflows:,} running workflows of {TASKS} tasks, at rest: {cost}, "
            f"{self.calls_per_minute:.0f} calls per minute; a lost pod is noticed after {self.noticed_s:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class RestartTime:
    """The seconds from the start of a process until it follows all tasks."""

    nodes: int
    workflows: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.workflows:,} running workflows of {TASKS} tasks: "
            f"a restarted service follows all of them after {self.seconds:.1f} s"
        )


class MeasuredService:
    """A service in a process of its own, which is asked by name for what `_Answers` can do."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(folder, kubeconfig, theirs), daemon=True)
        self._process.start()

    def ask(self, name: str, *given: object) -> Any:  # noqa: ANN401 - the answer of the named method
        """Return the answer of the process, however long that takes."""
        self._ours.send((name, given))
        if not self._ours.poll(_PATIENCE_S):
            raise TimeoutError(name)
        return self._ours.recv()

    def kill(self) -> None:
        """End the process as a crash would."""
        self._process.kill()
        self._process.join()


class _Answers:
    """The measured operations, inside the process of the service."""

    def __init__(self, service: Service, calls: CallCount) -> None:
        self._service, self._calls = service, calls

    def ready(self) -> None:
        """Wait until the cluster is known."""
        _until(lambda: self._service.pool("large")["counted"])

    def submit(self, count: int) -> list[str]:
        """Submit workflows, and return their ids."""
        return [str(self._service.submit(_workflow(number))["id"]) for number in range(count)]

    def followed(self, tasks: int) -> None:
        """Wait until so many tasks are followed."""
        _until(lambda: self._service.health()["running"] == tasks)

    def running(self, count: int) -> None:
        """Wait until so many workflows run."""
        query = WorkflowQuery(statuses=("RUNNING",))
        _until(lambda: len(self._service.workflows(query, limit=1000)["items"]) == count)

    def usage(self) -> ProcessUsage:
        """Return what the process has used so far."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return ProcessUsage(time.process_time(), pages * resource.getpagesize(), Counter(self._calls.calls))

    def rescheduled(self, ident: str) -> None:
        """Wait until a task of a workflow was tried again."""
        _until(lambda: any(each["kind"] == "TaskRescheduled" for each in self._service.events(0, ident)))


def _until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(_TICK_S)


def _serve(folder: Path, kubeconfig: Path, asked: Connection) -> None:
    """Run a service, and answer until the other end is closed."""
    os.environ["KUBECONFIG"] = str(kubeconfig)
    calls = CallCount()
    with Service(_settings(folder)) as service:
        answers = _Answers(service, calls)
        while True:
            try:
                name, given = asked.recv()
            except EOFError:
                return
            asked.send(getattr(answers, name)(*given))


def _settings(folder: Path) -> Settings:
    config = {
        "backends": {"lab": {"scheduler": "kai", "namespace": "default"}},
        "pools": {"large": {"backend": "lab", "topology_keys": LEVELS}},
    }
    file = folder / "coterie.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    # A lease of the killed process is over at once, so that a restart is measured and not the wait for it.
    return Settings(store=str(folder / "store.db"), state=folder / "state", config=file, grace_s=1.0, lease_s=1.0)


def _workflow(number: int) -> Submission:
    tasks = [{"name": f"t{each}", "lead": each == 0, "image": "work", "command": ["run"]} for each in range(TASKS)]
    spec = {
        "name": f"w{number}",
        "resources": {"default": {"gpu": 1, "cpu": 1}},
        "groups": [{"name": "g", "tasks": tasks}],
    }
    return Submission(json.dumps({"workflow": spec}).encode())


def add_nodes(lab: Lab, count: int) -> None:
    """Add nodes with eight GPUs, in racks of one zone."""
    racks = [f"r{number}" for number in range(-(-count // NODES_PER_RACK))]
    fleet = [{"domains": {"zone": "a", "rack": racks}, "nodes": NODES_PER_RACK, "gpu": 8, "cpu": 128, "memory": "2Ti"}]
    nodes.add(lab, read_cluster(yaml.safe_dump({"topology_keys": LEVELS, "fleet": fleet}).encode()))


def rest(lab: Lab, count: int, workflows: int, seconds: float) -> RestUsage:
    """Measure a service whose workflows run, while kubelets report that nothing has changed."""
    with tempfile.TemporaryDirectory() as folder:
        service = MeasuredService(Path(folder), lab.kubeconfig)
        try:
            idents = _running(service, workflows)
            with _heartbeats(lab):
                # What the start of the workflows has caused is over.
                time.sleep(seconds / 4)
                before = service.ask("usage")
                time.sleep(seconds)
                after = service.ask("usage")
            calls = sum((after.calls - before.calls).values())
            say("a pod is lost")
            pod = lab.objects("pods", selector=f"coterie.dev/workflow={idents[0]}")[0]["metadata"]["name"]
            lab.api.delete("pods", pod, "default", grace=0)
            noticed, _ = once(lambda: service.ask("rescheduled", idents[0]))
        finally:
            service.kill()
    cpu = (after.cpu_s - before.cpu_s) / seconds
    return RestUsage(count, workflows, cpu, after.resident, 60 * calls / seconds, noticed / 1e6)


def restart(lab: Lab, count: int, workflows: int) -> RestartTime:
    """Measure how long a service needs to follow all tasks again after it was killed."""
    with tempfile.TemporaryDirectory() as folder:
        service = MeasuredService(Path(folder), lab.kubeconfig)
        try:
            _running(service, workflows)
            service.kill()
            say("the service is started again")
            began = time.perf_counter()
            service = MeasuredService(Path(folder), lab.kubeconfig)
            service.ask("followed", workflows * TASKS)
            return RestartTime(count, workflows, time.perf_counter() - began)
        finally:
            service.kill()


def _running(service: MeasuredService, workflows: int) -> list[str]:
    """Submit workflows, and wait until all run."""
    service.ask("ready")
    say(f"{workflows:,} workflows are submitted")
    idents: list[str] = service.ask("submit", workflows)
    say("all are submitted, and wait until they run")
    service.ask("running", workflows)
    return idents


@contextmanager
def _heartbeats(lab: Lab) -> Iterator[None]:
    """Let all nodes write their unchanged status, as often as kubelets do, for as long as the block lasts."""
    names = [node["metadata"]["name"] for node in lab.objects("nodes")]
    over = threading.Event()

    def beat() -> None:
        for turn in range(10**9):
            name = names[turn % len(names)]
            if over.wait(HEARTBEAT_S / len(names)):
                return
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
            lab.api.patch("nodes", name, {"status": {"conditions": [condition]}}, status=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
