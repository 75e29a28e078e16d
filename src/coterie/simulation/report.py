"""A simulation as data and as text: the comparison, its measures, and its results."""

from __future__ import annotations

from typing import Any

from coterie.simulation.measures import Figures, Series
from coterie.simulation.simulate import Result

VERSION = 1

Json = dict[str, Any]


def fragmentation_words(result: Result) -> str:
    """Return a sentence that defines the measure of fragmentation."""
    rule = result.rule
    where = f"in one {rule.level}" if rule.level else "on the cluster"
    return (
        f"1 - (pods of {rule.node_gpus} GPUs that fit {where} now, at best) / (those that would if all free GPUs were "
        f"together, at most {rule.pods_per_domain}); counted while at least {rule.node_gpus} GPUs are free"
    )


def queue_words(result: Result) -> str:
    """Return a sentence that describes the queue."""
    return f"first come, first served; a waiting job blocks no other until {result.window:,} jobs have been passed over"


def duration(seconds: float) -> str:
    """Return a time with about three digits, in a suitable unit."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 72)):
        if seconds < size * most:
            return f"{seconds / size:.0f} {unit}" if unit == "s" else f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86400:,.1f} d"


def simulation_json(result: Result, *, trace: str, pool: str) -> Json:
    """Return a simulation as data; times are in seconds from the first submission, shares between 0 and 1."""
    rule = result.rule
    return {
        "version": VERSION,
        "trace": {"file": trace, "kind": result.trace.kind, "jobs": len(result.trace.jobs)},
        "cluster": {"pool": pool, "nodes": len(rule.domains), "gpus": result.gpus},
        "left_out": {
            "nodes": [{"reason": cause, "nodes": number} for cause, number in result.unused],
            "jobs": len(result.trace.jobs) - len(result.jobs),
        },
        "rule": {
            "level": rule.level,
            "preferred_level": rule.coarser if rule.level else None,
            "node_gpus": rule.node_gpus,
            "domain_gpus": rule.domain_gpus if rule.level else None,
            "words": rule.words(),
        },
        "queue": {"window": result.window, "words": queue_words(result)},
        "fragmentation": fragmentation_words(result),
        "jobs": len(result.jobs),
        "gpu_hours": round(result.gpu_hours, 3),
        "policies": [_policy(figures, series) for figures, series in zip(result.figures, result.series, strict=True)],
        "warnings": [{"code": notice.code, "message": notice.message} for notice in result.notices],
    }


def _policy(figures: Figures, series: Series) -> Json:
    waits = figures.waits
    spent = {
        "asked": figures.asked,
        "elapsed_ms": round(figures.elapsed_s * 1000, 3),
        "placements_per_s": round(figures.started / figures.elapsed_s, 1) if figures.elapsed_s else None,
    }
    return {
        "name": figures.policy,
        "started": figures.started,
        "never_started": figures.jobs - figures.started,
        "wait_s": None
        if waits is None
        else {name: round(getattr(waits, name), 3) for name in ("mean", "median", "p95", "longest")},
        "makespan_s": round(figures.makespan_s, 3),
        "gpu_use": _share(figures.gpu_use),
        "gpu_use_waiting": _share(figures.gpu_use_waiting),
        "fragmentation": _share(figures.fragmentation),
        "fragmentation_waiting": _share(figures.fragmentation_waiting),
        "preferred": {
            "jobs": figures.preferring,
            "missed": figures.missed,
            "missed_share": _share(figures.missed_share),
        },
        "violations": figures.violations,
        "undecided": figures.undecided,
        "stats": spent,
        "series": {
            "time_s": [round(time, 3) for time in series.time_s],
            "gpu_use": [round(value, 6) for value in series.gpu_use],
            "waiting": [round(value, 4) for value in series.waiting],
            "fragmentation": [_share(value) for value in series.fragmentation],
        },
    }


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
