"""The results as data and as readable tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.cluster.apply import ApplyTimes
from bench.engine.deltas import Deltas
from bench.engine.kueue_side import KueueReport
from bench.engine.memory import Memory
from bench.engine.placement import PlacementTimes
from bench.engine.quality import Quality, judge, no_worse
from bench.engine.snapshot_read import SnapshotRead
from bench.startup import Startup

# The intended speed-up of a warm placement over Kueue, from this many nodes on.
_GOALS = ((102_400, 100.0), (10_240, 10.0), (2_560, 1.0), (0, 0.5))
MEMORY_GOAL = 150e6
STARTUP_GOAL = 1.5
APPLY_GOAL = 1.1
LAB_GOAL_S = 15


@dataclass(frozen=True, slots=True)
class Line:
    """One request on one cluster, both sides; Kueue's is None where it was not measured."""

    request: str
    warm_us: float
    new_us: float
    cold_us: float
    ours: Quality
    kueue_warm_us: float | None = None
    kueue_cold_us: float | None = None
    kueue: Quality | None = None
    no_worse: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """All requests on one cluster."""

    nodes: int
    rebuild_us: float
    numpy_us: float
    lines: list[Line]
    kueue_version: str = ""
    kueue_snapshot_us: float | None = None
    kueue_heap_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements of one run."""

    python: str
    numpy: str
    comparisons: list[Comparison]
    deltas: Mapping[int, Deltas]
    memory: Memory
    reading: SnapshotRead
    startup: Startup
    applying: ApplyTimes | None = None


def compare(nodes: int, ours: PlacementTimes, theirs: KueueReport | None) -> Comparison:
    """Compare both sides, and check both answers by the same rules."""
    lines = []
    for request in ours.requests:
        timed = ours.timed[request.name]
        own = judge(request, timed.nodes, ours.capacity)
        if theirs is None:
            lines.append(Line(request.name, timed.warm_us, timed.new_us, timed.cold_us, own, no_worse=not own.faults))
            continue
        answer = theirs.answers[request.name]
        other = judge(request, answer.nodes if answer.placed else None, ours.capacity)
        lines.append(
            Line(
                request=request.name,
                warm_us=timed.warm_us,
                new_us=timed.new_us,
                cold_us=timed.cold_us,
                ours=own,
                kueue_warm_us=answer.warm_us,
                kueue_cold_us=answer.cold_us,
                kueue=other,
                no_worse=no_worse(own, other),
            )
        )
    if theirs is None:
        return Comparison(nodes, ours.rebuild_us, ours.numpy_us, lines)
    return Comparison(
        nodes, ours.rebuild_us, ours.numpy_us, lines, theirs.version, theirs.snapshot_us, theirs.heap_bytes
    )


def goal(nodes: int) -> float:
    """Return the intended speed-up over Kueue for a cluster of this size."""
    return next(times for least, times in _GOALS if nodes >= least)


def markdown(results: Results) -> str:
    """Return all results as tables."""
    parts = [
        table("Placing, microseconds", _PLACING, _placing(results.comparisons)),
        table("Answers", _ANSWERS, _answers(results.comparisons)),
        table("Preparing and the limit, microseconds", _PREPARING, _preparing(results.comparisons)),
        table("Placements in a row, microseconds", _ROW, _row(results.deltas)),
        table("Everything else", ("what", "Coterie", "compared with", "", "goal", "met"), _others(results)),
    ]
    return "\n".join(parts)


_PLACING = ("nodes", "request", "warm", "new gang", "cold", "Kueue warm", "Kueue cold", "warm ratio", "goal", "met")
_ANSWERS = ("nodes", "request", "racks", "nodes used", "Kueue racks", "Kueue nodes used", "at least as good")
_PREPARING = ("nodes", "numpy pass", "capacity rebuilt", "Kueue snapshot", "Kueue heap, MB")
_ROW = (
    "nodes",
    "placements",
    "refused",
    "place",
    "place, 99 %",
    "take",
    "release",
    "rebuild",
    "rebuild ratio",
    "exact",
)


def _placing(comparisons: Sequence[Comparison]) -> Iterator[Sequence[object]]:
    for one in comparisons:
        for line in one.lines:
            ratio = line.kueue_warm_us / line.warm_us if line.kueue_warm_us else None
            wanted = goal(one.nodes)
            yield (
                f"{one.nodes:,}",
                line.request,
                *map(_us, (line.warm_us, line.new_us, line.cold_us, line.kueue_warm_us, line.kueue_cold_us)),
                "" if ratio is None else f"{ratio:.3g} x",
                f"{wanted:g} x",
                "" if ratio is None else _yes(ratio >= wanted),
            )


def _answers(comparisons: Sequence[Comparison]) -> Iterator[Sequence[object]]:
    for one in comparisons:
        for line in one.lines:
            yield (
                f"{one.nodes:,}",
                line.request,
                *_used(line.ours),
                *(_used(line.kueue) if line.kueue else ("", "")),
                "; ".join(_faults(line)) or _yes(line.no_worse),
            )


def _faults(line: Line) -> list[str]:
    theirs = line.kueue.faults if line.kueue else ()
    return [*line.ours.faults, *(f"Kueue: {fault}" for fault in theirs)]


def _used(quality: Quality) -> tuple[str, str]:
    return (str(quality.racks), str(quality.nodes)) if quality.placed else ("refused", "")


def _preparing(comparisons: Sequence[Comparison]) -> Iterator[Sequence[object]]:
    for one in comparisons:
        heap = "" if one.kueue_heap_bytes is None else f"{one.kueue_heap_bytes / 1e6:.0f}"
        yield f"{one.nodes:,}", _us(one.numpy_us), _us(one.rebuild_us), _us(one.kueue_snapshot_us), heap


def _row(deltas: Mapping[int, Deltas]) -> Iterator[Sequence[object]]:
    for nodes, one in deltas.items():
        whole = one.place_median_us + one.take_median_us + one.release_median_us
        yield (
            f"{nodes:,}",
            f"{one.placements:,}",
            one.refused,
            *map(
                _us,
                (one.place_median_us, one.place_p99_us, one.take_median_us, one.release_median_us, one.rebuild_us),
            ),
            f"{one.rebuild_us / whole:.3g} x",
            _yes(one.exact),
        )


def _others(results: Results) -> Iterator[Sequence[object]]:
    read, start, held = results.reading, results.startup, results.memory
    yield (
        f"reading kubectl's JSON, {read.nodes:,} nodes and {read.pods:,} pods, {read.megabytes:.0f} MB",
        f"{read.coterie_ms:,.0f} ms",
        "json.loads",
        f"{read.json_ms:,.0f} ms",
        "",
        f"{read.json_ms / read.coterie_ms:.2g} x faster",
    )
    yield (
        f"a cluster of {held.nodes:,} nodes in memory",
        f"{held.kept / 1e6:.0f} MB held",
        "the process",
        f"{held.resident / 1e6:.0f} MB, peak {held.peak / 1e6:.0f} MB",
        f"{MEMORY_GOAL / 1e6:.0f} MB",
        _yes(held.kept <= MEMORY_GOAL),
    )
    yield (
        "coterie --help",
        f"{start.coterie_ms:.0f} ms",
        "an empty Typer app",
        f"{start.empty_ms:.0f} ms; without rich {start.bare_ms:.0f} ms; Python alone {start.python_ms:.0f} ms",
        f"{STARTUP_GOAL:g} x",
        _yes(start.coterie_ms <= STARTUP_GOAL * start.empty_ms),
    )
    if results.applying is not None:
        yield from applying_rows(results.applying)


def applying_rows(found: ApplyTimes) -> Iterator[Sequence[object]]:
    """Yield the measurements on a real cluster as rows of the last table."""
    ours, theirs = found.coterie, found.kubectl
    for what, own, other, goal_ in (
        ("all applied", ours.applied_ms, theirs.applied_ms, None),
        ("all pods bound", ours.bound_ms, theirs.bound_ms, APPLY_GOAL),
    ):
        yield (
            f"a gang of {found.pods} pods ({found.objects} objects) on {found.nodes:,} nodes, until {what}",
            f"{own:,.0f} ms",
            "kubectl apply",
            f"{other:,.0f} ms",
            "" if goal_ is None else f"{goal_:g} x",
            f"{own / other:.2f} x" + ("" if goal_ is None else f", {_yes(own <= goal_ * other)}"),
        )
    slowest = max(found.starts_s)
    yield (
        "a lab is started",
        f"{median(found.starts_s):.1f} s",
        "the slowest",
        f"{slowest:.1f} s of {len(found.starts_s)}",
        f"{LAB_GOAL_S} s",
        _yes(slowest <= LAB_GOAL_S),
    )


def _us(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _yes(good: bool) -> str:  # noqa: FBT001 - a yes or no is all it takes
    return "yes" if good else "**no**"


def table(title: str, heads: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    """Return rows as a table under a heading."""
    lines = [f"### {title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, ""])
