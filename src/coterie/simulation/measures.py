"""The figures of a run that are compared: waits, utilisation and fragmentation, in total and over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
import numpy.typing as npt

from coterie.simulation.replay import PolicyRun, Sample
from coterie.simulation.trace import TraceJob

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of jobs from submission to start, in seconds; jobs that never started do not count."""

    mean: float
    median: float
    p95: float
    longest: float


@dataclass(frozen=True, slots=True)
class Series:
    """Averages over equal time spans; `time_s` is the start of each. None where there is nothing to measure."""

    time_s: tuple[float, ...]
    gpu_use: tuple[float, ...]
    waiting: tuple[float, ...]
    fragmentation: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a policy; shares are between 0 and 1, None where their period has no length."""

    policy: str
    jobs: int
    started: int
    waits: Waits | None
    makespan_s: float
    gpu_use: float | None
    gpu_use_waiting: float | None
    fragmentation: float | None
    fragmentation_waiting: float | None
    preferring: int
    missed: int
    violations: int
    undecided: int
    asked: int
    elapsed_s: float

    @property
    def missed_share(self) -> float | None:
        """The share of jobs with a preferred level that did not get it."""
        return self.missed / self.preferring if self.preferring else None


def figures(run: PolicyRun, jobs: Sequence[TraceJob]) -> Figures:
    """Return the figures of a run."""
    started = [(job, start) for job, start in zip(jobs, run.starts, strict=True) if start is not None]
    steps = _Steps(run.samples)
    waits = steps.waiting > 0
    return Figures(
        policy=run.policy,
        jobs=len(jobs),
        started=len(started),
        waits=_waits([start - job.submit_s for job, start in started]),
        makespan_s=max((start + job.duration_s for job, start in started), default=0.0),
        gpu_use=steps.mean(steps.used / run.gpus, np.ones_like(waits)),
        gpu_use_waiting=steps.mean(steps.used / run.gpus, waits),
        fragmentation=steps.mean(steps.fragmentation, steps.measured),
        fragmentation_waiting=steps.mean(steps.fragmentation, steps.measured & waits),
        preferring=run.preferring,
        missed=run.missed,
        violations=run.violations,
        undecided=run.undecided,
        asked=run.asked,
        elapsed_s=run.elapsed_s,
    )


def series(run: PolicyRun, end_s: float, spans: int) -> Series:
    """Return averages over equal spans from the first submission to `end_s`."""
    steps = _Steps(run.samples)
    edges = np.linspace(0.0, end_s, spans + 1)
    every = np.ones_like(steps.used)
    # After its last job ended a run uses nothing, and nothing is left to compare.
    used, waiting = (steps.spread(values, edges) for values in (steps.used / run.gpus, steps.waiting))
    broken, measured = (
        steps.spread(values, edges) for values in (steps.fragmentation * steps.measured, every * steps.measured)
    )
    width = end_s / spans if end_s else 1.0
    return Series(
        tuple(edges[:-1].tolist()),
        tuple((used / width).tolist()),
        tuple((waiting / width).tolist()),
        tuple(
            float(share / time) if time > width * 1e-9 else None for share, time in zip(broken, measured, strict=True)
        ),
    )


class _Steps:
    """Samples as arrays: each holds from its time to the next one's."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.time = np.array([sample.time_s for sample in samples], dtype=np.float64)
        self.used = np.array([sample.used for sample in samples], dtype=np.float64)
        self.waiting = np.array([sample.waiting for sample in samples], dtype=np.float64)
        self.measured = np.array([sample.fragmentation is not None for sample in samples], dtype=bool)
        self.fragmentation = np.array([sample.fragmentation or 0.0 for sample in samples], dtype=np.float64)
        self.length = np.append(np.diff(self.time), 0.0)[: len(samples)]

    def mean(self, values: Floats, when: npt.NDArray[np.bool_]) -> float | None:
        """Return the mean over the time in which `when` holds."""
        length = self.length * when
        whole = float(length.sum())
        return float((values * length).sum()) / whole if whole > 0 else None

    def spread(self, values: Floats, edges: Floats) -> Floats:
        """Return, for each span between the edges, its time weighted by the values."""
        if not len(self.time):
            return np.zeros(len(edges) - 1)
        so_far = np.concatenate(([0.0], np.cumsum(values * self.length)[:-1]))
        return np.diff(np.interp(edges, self.time, so_far))


def _waits(found: Sequence[float]) -> Waits | None:
    if not found:
        return None
    rising = sorted(found)
    return Waits(fmean(rising), median(rising), rising[math.ceil(0.95 * len(rising)) - 1], rising[-1])
