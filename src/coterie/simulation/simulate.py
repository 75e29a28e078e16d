"""The replay of one trace on one cluster under several policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from coterie.errors import Notice
from coterie.placement.capacity import Capacity
from coterie.placement.engine import NoPlacement, place
from coterie.simulation.measures import Figures, Series, figures, series
from coterie.simulation.policies import POLICIES
from coterie.simulation.replay import DEFAULT_WINDOW, Clock, Gauge, PolicyRun, replay
from coterie.simulation.rule import Layout, Rule
from coterie.simulation.trace import Trace, TraceJob
from coterie.simulation.unused import unused_nodes

_SPANS = 200


@dataclass(frozen=True, slots=True)
class Result:
    """The result: the replayed jobs, and for each policy its run, its figures, and its series over time."""

    trace: Trace
    rule: Rule
    window: int
    gpus: int
    jobs: tuple[TraceJob, ...]
    runs: tuple[PolicyRun, ...]
    figures: tuple[Figures, ...]
    series: tuple[Series, ...]
    notices: tuple[Notice, ...]
    unused: tuple[tuple[str, int], ...]  # why GPU nodes were left out, and how many

    @property
    def gpu_hours(self) -> float:
        """The GPU hours of all jobs."""
        return sum(job.gpus * job.duration_s for job in self.jobs) / 3600


# Called with the policy, the number of jobs, the number of jobs done, and the time of the trace.
Progress = Callable[[str, int, int, float], None]


def simulate(
    trace: Trace,
    rule: Rule,
    capacity: Capacity,
    policies: Sequence[str],
    *,
    window: int = DEFAULT_WINDOW,
    progress: Progress = lambda _policy, _jobs, _done, _time_s: None,
    clock: Clock = lambda: 0.0,
) -> Result:
    """Replay a trace under each policy, always from the given capacity, which stays unchanged.

    Jobs that are proved not to fit even on the initial capacity are left out for all policies. `progress` is called
    after every event.
    """
    gauge = Gauge.of(rule, capacity)
    layouts = _layouts(rule, capacity, gauge, {job.gpus for job in trace.jobs})
    jobs = tuple(job for job in trace.jobs if job.gpus in layouts)
    runs = tuple(
        replay(
            name,
            POLICIES[name],
            jobs,
            layouts,
            capacity.copy(),
            gauge,
            window=window,
            progress=partial(progress, name, len(jobs)),
            clock=clock,
        )
        for name in policies
    )
    found = tuple(figures(run, jobs) for run in runs)
    unused = unused_nodes(rule, capacity)
    end_s = max((one.makespan_s for one in found), default=0.0)
    return Result(
        trace,
        rule,
        window,
        gauge.gpus,
        jobs,
        runs,
        found,
        tuple(series(run, end_s, _SPANS) for run in runs),
        (*_notices(trace, layouts, found), *_left_out(unused)),
        unused,
    )


def _layouts(rule: Rule, capacity: Capacity, gauge: Gauge, sizes: set[int]) -> dict[int, Layout]:
    """Return the layouts of all job sizes that may fit; sizes beyond the number of GPUs need no proof."""
    found = {}
    for gpus in sorted(sizes):
        if gpus > gauge.gpus:
            continue
        layout = rule.layout(gpus)
        answer = place(layout.gang, capacity)
        if not (isinstance(answer, NoPlacement) and answer.proved):
            found[gpus] = layout
    return found


def _left_out(unused: Sequence[tuple[str, int]]) -> Iterator[Notice]:
    if unused:
        number = sum(nodes for _, nodes in unused)
        whose = "1 node with GPUs is" if number == 1 else f"{number:,} nodes with GPUs are"
        yield Notice("NodesLeftOut", f"{whose} left out: {', '.join(f'{nodes:,} {cause}' for cause, nodes in unused)}")


def _notices(trace: Trace, layouts: dict[int, Layout], found: Sequence[Figures]) -> Iterator[Notice]:
    yield from trace.notices
    never = Counter(job.gpus for job in trace.jobs if job.gpus not in layouts)
    if never:
        sizes = ", ".join(f"{count:,} of {gpus:,} GPUs" for gpus, count in sorted(never.items())[:8])
        more = ", …" if len(never) > 8 else ""
        yield Notice("NeverFits", f"jobs that can never fit are left out for all policies: {sizes}{more}")
    for one in found:
        if left := one.jobs - one.started:
            yield Notice(
                "NeverStarted",
                f"{one.policy} never finds a place for {left:,} of {one.jobs:,} jobs, although there is one: "
                "they do not count in its waits",
            )
        if one.undecided:
            yield Notice("Undecided", f"searches that {one.policy} gave up: {one.undecided:,}; these jobs kept waiting")
