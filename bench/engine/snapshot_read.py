"""The time to read kubectl's JSON, against `json.loads` of the same bytes."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass

from bench.engine.snapshot import kubectl_json
from bench.timing import once
from coterie.sources.kubectl import read_kubectl


@dataclass(frozen=True, slots=True)
class SnapshotRead:
    """The best of several times in milliseconds, and the size of the input."""

    nodes: int
    pods: int
    megabytes: float
    coterie_ms: float
    json_ms: float


def measure(nodes: int, pods: int, runs: int) -> SnapshotRead:
    """Read the same snapshot both ways, alternately."""
    data = kubectl_json(nodes, pods)
    ours, plain = float("inf"), float("inf")
    for _ in range(runs):
        gc.collect()
        taken, snapshot = once(lambda: read_kubectl(data, "bench.json"))
        ours = min(ours, taken)
        if (len(snapshot.cluster), len(snapshot.cluster.pods)) != (nodes, pods):
            raise AssertionError("the snapshot was not read completely")
        del snapshot
        gc.collect()
        plain = min(plain, once(lambda: json.loads(data))[0])
    return SnapshotRead(nodes, pods, len(data) / 1e6, ours / 1e3, plain / 1e3)
