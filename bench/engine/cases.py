"""The measured clusters and requests as plain data, which both sides read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, Cluster, Node, Pod
from coterie.topology.levels import HOSTNAME, Topology

SIZES = (640, 2_560, 10_240, 102_400)
NODES_PER_RACK = 16
RACKS_PER_BLOCK = 16
GPUS_PER_NODE = 8

LEVELS = (("block", "bench.coterie.dev/block"), ("rack", "bench.coterie.dev/rack"), ("host", HOSTNAME))
TOPOLOGY = Topology.of(*LEVELS)

Amounts = Mapping[str, int]  # cpu in thousandths, memory in bytes, the rest in pieces

ALLOCATABLE: Amounts = {CPU: 128_000, MEMORY: 2 << 40, GPU: GPUS_PER_NODE, PODS: 110}


@dataclass(frozen=True, slots=True)
class Request:
    """A gang of equal pods with one topology requirement; `level` is a node label."""

    name: str
    pods: int
    each: Amounts
    level: str
    required: bool


def pod_of(gpus: int) -> Amounts:
    """Return the requests of one pod with this many GPUs."""
    return {CPU: 4_000 * gpus, MEMORY: (32 * gpus) << 30, GPU: gpus}


def _request(name: str, pods: int, gpus: int, level: str, *, required: bool) -> Request:
    return Request(name, pods, pod_of(gpus), TOPOLOGY.label(level), required)


REQUESTS = (
    _request("256 pods, block required", 256, 1, "block", required=True),
    _request("64 pods, rack required", 64, 1, "rack", required=True),
    _request("16 pods x 8 GPUs, rack preferred", 16, 8, "rack", required=False),
    _request("impossible: 17 pods x 8 GPUs, rack required", 17, 8, "rack", required=True),
)


def rows(nodes: int) -> Iterator[tuple[str, tuple[str, str], Amounts]]:
    """Yield name, block, rack and usage of every node; a random half of them is partly used."""
    chance = random.Random(nodes)  # noqa: S311 - the same cluster on every machine, nothing secret
    busy = set(chance.sample(range(nodes), nodes // 2))
    for number in range(nodes):
        rack = number // NODES_PER_RACK
        used = pod_of(chance.randint(1, GPUS_PER_NODE - 1)) if number in busy else {}
        yield f"n{number}", (f"b{rack // RACKS_PER_BLOCK}", f"r{rack}"), used


def write_case(file: Path, nodes: int, *, seconds: float, cold_runs: int) -> None:
    """Write one cluster, all requests, and the time to measure each of them."""
    case = {
        "levels": [label for _, label in LEVELS],
        "allocatable": ALLOCATABLE,
        "nodes": [{"name": name, "domains": domains, "used": used} for name, domains, used in rows(nodes)],
        "requests": [asdict(request) for request in REQUESTS],
        "seconds": seconds,
        "cold_runs": cold_runs,
    }
    file.write_text(json.dumps(case))


def read_case(file: Path) -> tuple[Cluster, list[Request]]:
    """Return the case that `write_case` wrote, in Coterie's types."""
    case = json.loads(file.read_text())
    levels = case["levels"]
    nodes = []
    pods = []
    for one in case["nodes"]:
        name = one["name"]
        labels = dict(zip(levels, [*one["domains"], name], strict=True))
        nodes.append(Node(name, labels, case["allocatable"]))
        if one["used"]:
            pods.append(Pod(f"bench/{name}-pod", name, one["used"]))
    return Cluster.of(nodes, pods), [Request(**request) for request in case["requests"]]


def gang_of(request: Request) -> Gang:
    """Return a request as a gang."""
    level = next(level.name for level in TOPOLOGY.levels if level.label == request.level)
    shape = Shape(tuple(sorted(request.each.items())))
    requirement = TaskRequirement(level, required=request.required)
    return build(
        request.name,
        [RequestedTask(f"task-{number}", shape, (requirement,)) for number in range(request.pods)],
        TOPOLOGY,
    )
