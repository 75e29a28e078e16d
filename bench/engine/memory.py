"""The memory of a large cluster, measured in a separate process."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.engine.cases import ALLOCATABLE, LEVELS, REQUESTS, TOPOLOGY, gang_of, rows
from coterie.placement.capacity import Capacity
from coterie.placement.engine import place
from coterie.topology.cluster import Cluster, Node, Pod
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a cluster in bytes.

    `kept` is what Python and numpy hold for the cluster, its domains, its capacity and the indexes of all requests;
    `resident` is the growth of the process, and `peak` its growth while the cluster was being built.
    """

    nodes: int
    kept: int
    resident: int
    peak: int


def measure(nodes: int) -> Memory:
    """Return the memory of a cluster built in two fresh processes: one with allocation tracing, one without."""
    traced, plain = (_elsewhere(nodes, how) for how in ("traced", "plain"))
    return Memory(nodes, kept=traced["kept"], resident=plain["resident"], peak=plain["peak"])


def _elsewhere(nodes: int, how: str) -> dict[str, int]:
    command = [sys.executable, "-m", "bench.engine.memory", str(nodes), how]
    done = subprocess.run(  # noqa: S603 - this very module
        command, check=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


def _build(nodes: int) -> Capacity:
    cluster = Cluster.of(_nodes(nodes), _pods(nodes))
    capacity = Capacity.now(Domains.of(cluster, TOPOLOGY))
    for request in REQUESTS:
        place(gang_of(request), capacity)
    return capacity


def _nodes(nodes: int) -> Iterator[Node]:
    for name, domains, _ in rows(nodes):
        labels = dict(zip((label for _, label in LEVELS), (*domains, name), strict=True))
        yield Node(name, labels, dict(ALLOCATABLE))


def _pods(nodes: int) -> Iterator[Pod]:
    for name, _, used in rows(nodes):
        if used:
            yield Pod(f"bench/{name}-pod", name, used, owner=f"bench/{name}-job")


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _peak() -> int:
    """Return the highest resident size since the program began; `getrusage` would include its parent's."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def _main(nodes: int, *, traced: bool) -> dict[str, int]:
    _build(640)  # modules loaded on first use do not count for the cluster
    gc.collect()
    if traced:
        tracemalloc.start()
        capacity = _build(nodes)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        return {"nodes": len(capacity.domains), "kept": kept}
    before = _resident()
    capacity = _build(nodes)
    gc.collect()
    return {"nodes": len(capacity.domains), "resident": _resident() - before, "peak": _peak() - before}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_main(int(sys.argv[1]), traced=sys.argv[2] == "traced")))
