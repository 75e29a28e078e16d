"""The time to place the requests of a case: warm, with a new gang, and cold; and numpy's lower bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.engine.cases import TOPOLOGY, Request, gang_of, read_case
from bench.timing import best, once
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.topology.domains import Domains

# The same number as for Kueue.
_WARM_RUNS = 50


@dataclass(frozen=True, slots=True)
class Timed:
    """One request on one cluster.

    Warm: the same gang again. New: a new gang of a known shape. Cold: the first request to a new capacity.
    """

    warm_us: float
    new_us: float
    cold_us: float
    nodes: Mapping[str, int] | None  # pods per node; None for a refusal


@dataclass(frozen=True, slots=True)
class PlacementTimes:
    """All requests on one cluster; `rebuild_us` rebuilds a capacity, `numpy_us` is one pass over all nodes."""

    requests: list[Request]
    capacity: Capacity
    timed: Mapping[str, Timed]
    rebuild_us: float
    numpy_us: float


def measure(case: Path, *, seconds: float, cold_runs: int) -> PlacementTimes:
    """Measure every request of a case."""
    cluster, requests = read_case(case)
    domains = Domains.of(cluster, TOPOLOGY)
    capacity = Capacity.now(domains)
    return PlacementTimes(
        requests=requests,
        capacity=capacity,
        timed={request.name: _one(request, capacity, seconds, cold_runs) for request in requests},
        rebuild_us=best(lambda: Capacity.now(domains), 0, least=max(3, cold_runs)),
        numpy_us=numpy_pass(requests[0], capacity, seconds),
    )


def _one(request: Request, capacity: Capacity, seconds: float, cold_runs: int) -> Timed:
    gang = gang_of(request)
    answer = place(gang, capacity)
    warm = best(partial(place, gang, capacity), seconds, least=_WARM_RUNS)
    strangers = [gang_of(request) for _ in range(50)]
    new = min(once(partial(place, stranger, capacity))[0] for stranger in strangers)
    cold = min(_first(request, capacity.domains) for _ in range(max(5, cold_runs)))
    return Timed(warm, new, cold, pods_per_node(answer))


def _first(request: Request, domains: Domains) -> float:
    gang = gang_of(request)
    fresh = Capacity.now(domains)
    return once(lambda: place(gang, fresh))[0]


def pods_per_node(answer: Found | NoPlacement) -> Mapping[str, int] | None:
    """Return how many pods an answer puts on each node, or None for a refusal."""
    return Counter(answer.nodes.values()) if isinstance(answer, Found) else None


def numpy_pass(request: Request, capacity: Capacity, seconds: float) -> float:
    """Return numpy's time to count once, on all nodes, how many pods fit, and to sum that up per rack."""
    fit = capacity.fit(gang_of(request).all_tasks()[0].shape)
    free = np.ascontiguousarray(capacity.free[fit.rows])
    start = capacity.domains.tiers[TOPOLOGY.index("rack")].start
    return best(lambda: np.add.reduceat((free // fit.need).min(axis=0), start), seconds)
