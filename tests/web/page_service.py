"""A service in a process of its own, as `coterie serve` starts it, for tests of the web page."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from lab.ports import Ports

from coterie.service.pools.history import KEPT_S, SAMPLE_S
from coterie.service.settings import Submission
from coterie.store import PoolSample, Store
from tests.eventually import eventually
from tests.service.running_service import task, workflow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
FOREVER = "echo started; sleep 600"

# Two zones of racks, with a cordoned node, one that is not ready, and one without the label of a rack; and two NVLink
# domains with names as GPU feature discovery writes them.
CLUSTER = """
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
- {key: clique, label: nvidia.com/gpu.clique}
fleet:
- {domains: {zone: [west], rack: [w1, w2, w3]}, nodes: 4, name: "{rack}-n{n}", gpu: 4, cpu: 32, labels: {kind: racks}}
- {domains: {zone: [east], rack: [e1, e2]}, nodes: 4, name: "{rack}-n{n}", gpu: 4, cpu: 32, labels: {kind: racks}}
- domains:
    zone: [north]
    rack: [n1]
    clique: [8c2f4d1e-5b7a-4c39-9d26-0f1e2a3b4c5d.0, 8c2f4d1e-5b7a-4c39-9d26-0f1e2a3b4c5d.1]
  nodes: 4
  name: "gb200-{clique}-n{n}"
  gpu: 4
  cpu: 32
  labels: {kind: nvl}
nodes:
- {name: spare-1, labels: {topology.kubernetes.io/zone: east, kind: racks}, gpu: 4, cpu: 32}
- {name: e2-off, domains: {zone: east, rack: e2}, labels: {kind: racks}, gpu: 4, cpu: 32, cordoned: true}
- {name: e2-down, domains: {zone: east, rack: e2}, labels: {kind: racks}, gpu: 4, cpu: 32, ready: false}
"""

CONFIG = """
backends:
  lab: {scheduler: local, cluster: cluster.yaml}
pools:
  training:
    backend: lab
    node_selector: {kind: racks}
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
  nvl72:
    backend: lab
    node_selector: {kind: nvl}
    topology_keys:
    - {key: rack, label: topology.kubernetes.io/rack}
    - {key: clique, label: nvidia.com/gpu.clique}
"""


def gang(name: str, size: int, topology: str = "[{key: rack}]", script: str = FOREVER, gpu: int = 4) -> Submission:
    """Return a workflow of one gang that shares a domain."""
    tasks = [task(f"w{n}", script, "" if n else "lead: true") for n in range(size)]
    return workflow(name, {"gang": tasks}, gpu=gpu, topology=topology)


def with_history(service: PageService, pool: str, gpus: int) -> None:
    """Give a pool the past of a day: use that rises and falls, waits, and an hour in which no service ran."""
    now = time.time() // SAMPLE_S * SAMPLE_S
    samples = []
    for minute in range(24 * 60):
        if 120 <= minute < 180:
            continue
        wave = (1 + math.sin((minute + 28) / 70)) / 2
        used = round(gpus * (0.25 + 0.7 * wave))
        waiting = 1 if wave > 0.8 or not minute else 0
        share = None if used == gpus else round(0.6 * wave, 2)
        at = now - minute * SAMPLE_S
        samples.append(
            PoolSample(
                pool,
                at,
                gpus,
                used,
                gpus - used,
                waiting,
                8 * waiting,
                waiting * (1800.0 * wave if minute else 30.0),
                share,
            )
        )
    with Store.open(str(service.folder / "state" / "coterie.db")) as store:
        store.add_samples(samples, now - 2 * KEPT_S)


class PageService:
    """A running service; its workflows are ended with it."""

    def __init__(self, folder: Path, config: str = CONFIG, cluster: str = CLUSTER) -> None:
        self.folder = folder
        (folder / "coterie.yaml").write_text(config, encoding="utf-8")
        (folder / "cluster.yaml").write_text(cluster, encoding="utf-8")
        self._ports = Ports()
        # Nobody else takes it while the service is stopped, as might happen to one that the kernel picks.
        self.port = self._ports.take()
        self.token = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            self.start()
        for each in self.list_workflows(finished=False):
            self.ask("POST", f"workflows/{each['id']}/cancel", json={"force": True})
        eventually(lambda: not self.list_workflows(finished=False), lambda: self.list_workflows(finished=False))
        self.stop()
        self._ports.release()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the service, under the same address as before."""
        with (self.folder / "service.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "coterie", "serve", "--config", str(self.folder / "coterie.yaml")),
                    *("--state", str(self.folder / "state"), "--port", str(self.port)),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if not said:
            self.stop()
            raise AssertionError((self.folder / "service.log").read_text(encoding="utf-8"))
        self.port = int(said.rpartition(":")[2])

    def stop(self) -> None:
        """Stop the service; its tasks go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def replace(self, name: str, text: str) -> None:
        """Give a file of the service another text; it is never read half-written."""
        (self.folder / f".{name}").write_text(text, encoding="utf-8")
        (self.folder / f".{name}").replace(self.folder / name)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Return the JSON that a request is answered with."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        answer = httpx2.request(method, f"{self.url}/api/v1/{path}", headers=headers, timeout=PATIENCE_S, **more)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def list_workflows(self, **query: Any) -> list[Any]:
        """Return the workflows."""
        found: list[Any] = self.ask("GET", "workflows", params=query)["items"]
        return found

    def submit(self, submission: Submission, pool: str = "training") -> str:
        """Submit a workflow and return its id."""
        made = self.ask("POST", "workflows", json={"source": submission.source.decode(), "pool": pool})
        return str(made["id"])

    def until(self, ident: str, condition: Callable[[Any], bool]) -> Any:
        """Wait until a workflow is as wanted, and return it."""
        eventually(
            lambda: condition(self.ask("GET", f"workflows/{ident}")), lambda: self.ask("GET", f"workflows/{ident}")
        )
        return self.ask("GET", f"workflows/{ident}")

    def run(self, submission: Submission, pool: str = "training") -> str:
        """Submit a workflow and wait until it runs."""
        ident = self.submit(submission, pool)
        self.until(ident, lambda found: found["status"] == "RUNNING")
        return ident

    def cancel(self, ident: str) -> None:
        """Cancel a workflow and wait for its end."""
        self.ask("POST", f"workflows/{ident}/cancel", json={"force": True})
        self.until(ident, lambda found: bool(found["finished"]))
