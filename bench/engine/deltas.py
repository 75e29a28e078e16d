"""The cost of one of a thousand placements, with releases between them, when nothing is rebuilt."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bench.engine.cases import TOPOLOGY, pod_of
from bench.timing import best, once
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.topology.domains import Domains

_SHAPES = {gpus: Shape(tuple(sorted(pod_of(gpus).items()))) for gpus in (1, 2, 4, 8)}
# Pods, GPUs of each, level, and whether it is required: mostly small jobs, and a few large ones.
_MIX = (
    (1, 1, "rack", True),
    (2, 4, "rack", True),
    (4, 8, "rack", False),
    (8, 2, "rack", True),
    (16, 8, "rack", False),
    (32, 1, "rack", True),
    (64, 8, "block", True),
    (128, 4, "block", False),
)
# Once this many gangs run, one is released for every one placed: the cluster is busy, but never full.
_RUNNING = 40


@dataclass(frozen=True, slots=True)
class Deltas:
    """The microseconds per placement: the search, the update for a placement and a release, and one rebuild."""

    placements: int
    refused: int
    place_median_us: float
    place_p99_us: float
    take_median_us: float
    release_median_us: float
    rebuild_us: float
    exact: bool  # the incrementally updated capacity equals a rebuilt one


def measure(domains: Domains, placements: int, runs: int) -> Deltas:
    """Place and release gangs of mixed sizes on a cluster, several times, and return each step's best time."""
    rows = [_Row.run(domains, placements) for _ in range(runs)]
    placing, taking, releasing = (
        np.min([getattr(row, what) for row in rows], axis=0) for what in ("placing", "taking", "releasing")
    )
    return Deltas(
        placements=placements,
        refused=rows[0].refused,
        place_median_us=float(np.median(placing)),
        place_p99_us=float(np.percentile(placing, 99)),
        take_median_us=float(np.median(taking)),
        release_median_us=float(np.median(releasing)) if len(releasing) else 0.0,
        rebuild_us=best(lambda: _rebuilt(domains), 0, least=3 * runs),
        exact=all(row.exact for row in rows),
    )


@dataclass(slots=True)
class _Row:
    """The times of one thousand placements; every run repeats the same ones."""

    placing: list[float] = field(default_factory=list)
    taking: list[float] = field(default_factory=list)
    releasing: list[float] = field(default_factory=list)
    refused: int = 0
    exact: bool = False

    @staticmethod
    def run(domains: Domains, placements: int) -> _Row:
        chance = random.Random(placements)  # noqa: S311 - the same queue on every machine, nothing secret
        capacity = _rebuilt(domains)
        running: list[tuple[Shape, Counter[int]]] = []
        row = _Row()
        for number in range(placements):
            gang, shape = _gang(number, chance)
            taken, found = once(partial(place, gang, capacity))
            row.placing.append(taken)
            if not isinstance(found, Found):
                row.refused += 1
                continue
            where = Counter(found.positions.values())
            row.taking.append(once(partial(capacity.take, shape, where.keys(), where.values()))[0])
            running.append((shape, where))
            if len(running) > _RUNNING:
                old, gone = running.pop(chance.randrange(len(running)))
                back = [-pods for pods in gone.values()]
                row.releasing.append(once(partial(capacity.take, old, gone.keys(), back))[0])
        row.exact = _same(capacity, domains, running)
        return row


def _gang(number: int, chance: random.Random) -> tuple[Gang, Shape]:
    pods, gpus, level, required = chance.choice(_MIX)
    requirement = TaskRequirement(level, required=required)
    shape = _SHAPES[gpus]
    return build(
        f"g{number}", [RequestedTask(f"t{task}", shape, (requirement,)) for task in range(pods)], TOPOLOGY
    ), shape


def _rebuilt(domains: Domains) -> Capacity:
    """Return a rebuilt capacity, with the index of every shape in use."""
    capacity = Capacity.now(domains)
    for shape in _SHAPES.values():
        capacity.fit(shape)
    return capacity


def _same(kept: Capacity, domains: Domains, running: list[tuple[Shape, Counter[int]]]) -> bool:
    """Return whether a thousand deltas lead to the same capacity as one calculation from scratch."""
    scratch = Capacity.now(domains)
    for shape, where in running:
        for name, amount in (("pods", 1), *shape.requests):
            row = domains.cluster.resource(name)
            scratch.free[row, list(where)] -= np.array(list(where.values())) * amount
    return np.array_equal(kept.free, scratch.free) and all(
        np.array_equal(kept.fit(shape).fits, scratch.fit(shape).fits)
        and kept.fit(shape).total == scratch.fit(shape).total
        and all(map(np.array_equal, kept.fit(shape).sums, scratch.fit(shape).sums))
        for shape in _SHAPES.values()
    )
