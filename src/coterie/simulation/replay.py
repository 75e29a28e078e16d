"""The event loop: jobs arrive, start when a policy places them, and end; the same for every policy.

The queue is first come, first served, but a waiting job does not block others: after every event the waiting jobs are
tried in order of arrival, until `window` of them have been passed over. Of jobs of one size, only the first is tried
until some job ends. A job that cannot be placed while nothing runs never can be, and is set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.simulation.policies import Policy, PolicyRefusal, Spots
from coterie.simulation.rule import Layout, Rule
from coterie.simulation.trace import TraceJob
from coterie.topology.cluster import GPU

DEFAULT_WINDOW = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster between two events: GPUs held by jobs, waiting jobs, and the fragmentation of the rest."""

    time_s: float
    used: int
    waiting: int
    fragmentation: float | None


@dataclass(slots=True)
class PolicyRun:
    """The outcome of a trace under one policy; `starts` and `spots` are by job, None for one that never started."""

    policy: str
    gpus: int
    starts: list[float | None]
    spots: list[Spots | None]
    samples: list[Sample] = field(default_factory=list)
    preferring: int = 0
    missed: int = 0
    violations: int = 0
    asked: int = 0
    undecided: int = 0
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class Gauge:
    """The measurement of a capacity relative to what was free at the start."""

    rule: Rule
    gpus: int

    @staticmethod
    def of(rule: Rule, capacity: Capacity) -> Gauge:
        """Return the gauge for a capacity of which no job holds anything yet."""
        open_ = capacity.fit(rule.shape(1)).mask & capacity.usable
        free = np.maximum(capacity.free[rule.domains.cluster.resource(GPU)], 0)
        return Gauge(rule, int(free[open_].sum()))

    def fragmentation(self, capacity: Capacity, used: int) -> float | None:
        """Return the share of the best possible gang that does not fit, None when less than one pod's GPUs are free.

        The gang consists of pods as large as the usual node, in one domain of the rule's level. The best possible one
        is what the free GPUs would hold if they were contiguous, but no more than the usual domain.
        """
        best = min((self.gpus - used) // self.rule.node_gpus, self.rule.pods_per_domain)
        if best <= 0:
            return None
        fit = capacity.fit(self.rule.shape(self.rule.node_gpus))
        level = self.rule.level
        sums = None if level is None else fit.sums[self.rule.domains.topology.index(level)]
        largest = fit.total if sums is None else int(sums.max(initial=0))
        return max(0.0, 1 - largest / best)


Progress = Callable[[int, float], None]
Clock = Callable[[], float]


def replay(
    name: str,
    policy: Policy,
    jobs: Sequence[TraceJob],
    layouts: Mapping[int, Layout],
    capacity: Capacity,
    gauge: Gauge,
    *,
    window: int = DEFAULT_WINDOW,
    progress: Progress = lambda _done, _time_s: None,
    clock: Clock = lambda: 0.0,
) -> PolicyRun:
    """Replay jobs, sorted by their submission, on a capacity, which is modified.

    `layouts` has an entry for every size of job. `progress` is called after every event with the number of jobs done;
    `clock` only measures the time the policy takes and influences no decision.
    """
    return _Replay(name, policy, jobs, layouts, capacity, gauge, window, clock).run(progress)


class _Replay:
    def __init__(
        self,
        name: str,
        policy: Policy,
        jobs: Sequence[TraceJob],
        layouts: Mapping[int, Layout],
        capacity: Capacity,
        gauge: Gauge,
        window: int,
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._jobs = jobs
        self._layouts = layouts
        self._capacity = capacity
        self._gauge = gauge
        self._window = window
        self._clock = clock
        self._ends: list[tuple[float, int]] = []
        self._waiting: dict[int, None] = {}
        self._failed: set[int] = set()
        self._used = 0
        self._result = PolicyRun(name, gauge.gpus, [None] * len(jobs), [None] * len(jobs))

    def run(self, progress: Progress) -> PolicyRun:
        arrived = ended = 0
        set_aside = 0
        while self._ends or arrived < len(self._jobs):
            times = [end for end, _ in self._ends[:1]]
            times += [job.submit_s for job in self._jobs[arrived : arrived + 1]]
            now = min(times)
            while self._ends and self._ends[0][0] <= now:
                self._end(heappop(self._ends)[1])
                ended += 1
            while arrived < len(self._jobs) and self._jobs[arrived].submit_s <= now:
                self._waiting[arrived] = None
                arrived += 1
            passed_over = self._start_some(now)
            while passed_over and not self._ends:
                for job in passed_over:
                    del self._waiting[job]
                set_aside += len(passed_over)
                passed_over = self._start_some(now)
            fragmentation = self._gauge.fragmentation(self._capacity, self._used)
            self._result.samples.append(Sample(now, self._used, len(self._waiting), fragmentation))
            progress(ended + set_aside, now)
        return self._result

    def _start_some(self, now: float) -> list[int]:
        """Start the jobs that can start; return those that were passed over."""
        passed_over: list[int] = []
        for index in list(self._waiting):
            if len(passed_over) >= self._window:
                break
            if not self._try(index, now):
                passed_over.append(index)
        return passed_over

    def _try(self, index: int, now: float) -> bool:
        job = self._jobs[index]
        if job.gpus in self._failed:
            return False
        layout = self._layouts[job.gpus]
        before = self._clock()
        spots = self._policy(layout, self._capacity)
        self._result.elapsed_s += self._clock() - before
        self._result.asked += 1
        if isinstance(spots, PolicyRefusal):
            self._result.undecided += spots is PolicyRefusal.UNDECIDED
            self._failed.add(job.gpus)
            return False
        del self._waiting[index]
        self._charge(layout, spots, 1)
        self._used += job.gpus
        self._result.starts[index], self._result.spots[index] = now, spots
        self._judge(layout, spots)
        heappush(self._ends, (now + job.duration_s, index))
        return True

    def _end(self, index: int) -> None:
        job = self._jobs[index]
        self._charge(self._layouts[job.gpus], self._result.spots[index] or (), -1)
        self._used -= job.gpus
        self._failed.clear()

    def _charge(self, layout: Layout, spots: Spots, sign: int) -> None:
        for shape, positions in _by_shape(layout, spots):
            where, counts = np.unique(positions, return_counts=True)
            self._capacity.take(shape, where.tolist(), (sign * counts).tolist())

    def _judge(self, layout: Layout, spots: Spots) -> None:
        """Check a placement independently of the policy that made it."""
        tiers = self._capacity.domains.tiers
        broken = len(spots) != len(layout.pods) or int(self._capacity.free[:, list(spots)].min()) < 0
        if layout.level is not None:
            of = tiers[layout.level].of
            homes = [{int(of[spots[pod]]) for pod in members} for members in layout.members]
            broken = broken or any(len(home) != 1 or -1 in home for home in homes)
        self._result.violations += broken
        if layout.preferred is not None:
            of = tiers[layout.preferred].of
            self._result.preferring += 1
            self._result.missed += len({int(of[spot]) for spot in spots}) > 1


def _by_shape(layout: Layout, spots: Spots) -> Iterator[tuple[Shape, list[int]]]:
    found: dict[Shape, list[int]] = {}
    for shape, spot in zip(layout.pods, spots, strict=True):
        found.setdefault(shape, []).append(spot)
    yield from found.items()
