"""A real `coterie serve` with a simulated pool for the measurements of the service."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

GPUS = 8
PER_RACK = 16
MOST_PODS = 26_000
# Most gangs run in OPEN; in SHUT, which may use no GPU, they wait for ever and start no process.
OPEN, SHUT = "open", "shut"
# How long a service may take to answer for the first time, and to end.
_PATIENCE_S = 60
_TICK_S = 0.1
_KEYS = "[{key: block, label: example.com/block}, {key: rack, label: example.com/rack}]"


@dataclass(frozen=True, slots=True)
class Served:
    """A running service and its process."""

    url: str
    process: subprocess.Popen[str]

    def client(self) -> httpx2.Client:
        """Return a client with its own connections; an unsuccessful answer raises."""
        return httpx2.Client(base_url=f"{self.url}/api/v1", timeout=600, event_hooks={"response": [_check]})

    def resident(self) -> int:
        """Return the resident memory of the process in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def cpu_s(self) -> tuple[float, float]:
        """Return the processor time of the service so far, and that of all processes it has started."""
        own, ended = _cpu_s(self.process.pid)
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        below = [int(pid) for listed in lists for pid in listed.read_text().split()]
        return own, ended + sum(sum(_cpu_s(pid)) for pid in below)


def _cpu_s(pid: int) -> tuple[float, float]:
    """Return the processor time of a process, and that of its ended children."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, user_below, system_below = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[11:15])
    return user + system, user_below + system_below


@contextmanager
def served(folder: Path, nodes: int, *, held: bool = False) -> Iterator[Served]:
    """Start a service that keeps everything in a new folder; stop it at the end, but keep the folder.

    Most of its nodes are free, or held by other jobs.
    """
    folder.mkdir()
    (folder / "cluster.yaml").write_text(_cluster(nodes) + (_pods(nodes) if held else ""), encoding="utf-8")
    (folder / "coterie.yaml").write_text(_config(), encoding="utf-8")
    options = ["--config", folder / "coterie.yaml", "--state", folder / "state", "--port", "0"]
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "coterie", "serve", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            url = process.stdout.readline().strip() if process.stdout else ""
            if not url:
                raise RuntimeError((folder / "stderr").read_text())
            until(lambda: bool(httpx2.get(f"{url}/readyz").is_success), _PATIENCE_S)
            yield Served(url, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def until(holds: Callable[[], bool], timeout_s: float) -> None:
    """Wait until a condition holds; raise TimeoutError after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"the condition did not hold within {timeout_s:.0f} s")
        time.sleep(_TICK_S)


def submission(tasks: int, pool: str = OPEN) -> dict[str, str]:
    """Return the body of a submission: a gang of tasks that end at once, each with a node's GPUs, all in one rack."""
    listed = [
        {"name": f"t{number}", "image": "any", "lead": number == 0, "command": ["/bin/true"]} for number in range(tasks)
    ]
    default = {"gpu": GPUS, "cpu": 1, "topology": [{"key": "rack"}]}
    workflow = {"name": "bench", "groups": [{"name": "g", "tasks": listed}], "resources": {"default": default}}
    return {"source": json.dumps({"version": 2, "workflow": workflow}), "pool": pool}


def _check(response: httpx2.Response) -> None:
    if not response.is_success:
        response.read()
        raise RuntimeError(f"{response.request.method} {response.request.url}: {response.text[:1000]}")


def _cluster(nodes: int) -> str:
    blocks, racks = _blocks(nodes)
    return f"""\
topology_keys: {_KEYS}
fleet:
- domains: {{block: {blocks}, rack: {racks}}}
  nodes: {min(nodes, PER_RACK)}
  gpu: {GPUS}
  cpu: 64
  memory: 512Gi
"""


def _blocks(nodes: int) -> tuple[int, int]:
    """Return the number of blocks, and of racks in each."""
    racks = max(1, nodes // PER_RACK)
    blocks = next(count for count in (5, 4, 3, 2, 1) if racks % count == 0)
    return blocks, racks // blocks


def _pods(nodes: int) -> str:
    """Return the pods of jobs that hold two thirds of all nodes, each in some neighbouring racks of a block.

    In a very large pool they hold fewer: a cluster file may have only so many values.
    """
    blocks, racks = _blocks(nodes)
    held = min(2 * min(nodes, PER_RACK) // 3, MOST_PODS // (blocks * racks))
    return "pods:\n" + "".join(
        f"- {{owner: job-{block}-{rack // 6}, node: block{block + 1}-rack{rack + 1}-n{node}, gpu: {GPUS}}}\n"
        for block in range(blocks)
        for rack in range(racks)
        for node in range(1, 1 + held)
    )


def _config() -> str:
    pools = "".join(
        f"  {name}: {{backend: here, topology_keys: {_KEYS}{quota}}}\n"
        for name, quota in ((OPEN, ""), (SHUT, ", gpus: {limit: 0}"))
    )
    return f"backends:\n  here: {{scheduler: local, cluster: cluster.yaml}}\npools:\n{pools}"
