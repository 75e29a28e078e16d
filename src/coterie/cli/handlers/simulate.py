"""`coterie simulate`: replay a trace under several policies, and print the comparison."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from coterie.cli.commands.simulate import SimulateOptions
from coterie.cli.inputs.source import ClusterInput, named_files, notices_of, read_cluster_input, read_input, shown, warn
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import screen, show, show_data
from coterie.errors import UsageError, did_you_mean
from coterie.gang.tree import Shape
from coterie.inspection.map import default_depth, level_depth
from coterie.placement.capacity import Capacity
from coterie.planning.advice.assumed_tolerations import assumed_tolerations
from coterie.rendering.text import Style, count, table, visible, wrapped
from coterie.simulation.measures import Figures
from coterie.simulation.plot import simulation_svg
from coterie.simulation.policies import POLICIES
from coterie.simulation.report import duration, fragmentation_words, queue_words, simulation_json
from coterie.simulation.rule import Rule
from coterie.simulation.simulate import Result, simulate
from coterie.simulation.trace import Trace, TraceTiming, read_trace
from coterie.topology.cluster import GPU
from coterie.topology.domains import Domains

NO_RULE = "none"


def run(options: SimulateOptions) -> None:
    """Replay a trace, print the comparison, and plot it if requested."""
    policies = _policies(options.policy)
    pace = _pace(options)
    _check_plot(options.plot)
    if "-" in named_files(options.source) and options.trace == "-":
        raise UsageError("standard input can be read only once", "Use - for the trace or for --cluster, not for both.")
    trace = _trace(options, pace)
    world = read_cluster_input(options.source)
    domains = Domains.of(world.cluster, world.topology)
    pods = world.pool.admitted(Shape(((GPU, 1),)))
    rule = Rule.of(domains, _level(options.rule, domains), pods.selector, pods.tolerations)
    capacity = Capacity.now(domains)
    if world.pool.traits.hides_unlabelled and rule.level is not None:
        capacity.usable &= domains.tiers[-1].of >= 0  # nodes that lack the label of any level
    ticker = _Ticker()
    result = simulate(
        trace, rule, capacity, policies, window=options.window, progress=ticker.tell, clock=time.perf_counter
    )
    ticker.end()
    _print(options, world, result)
    if options.plot is not None:
        Path(options.plot).write_text(
            "\n".join((*simulation_svg(result, trace=shown(options.trace)), "")), encoding="ascii"
        )
        typer.echo(safe(f"plot written to {options.plot}"), err=True)
    warn((*notices_of(world), *assumed_tolerations([pods], world.cluster), *result.notices))


def _trace(options: SimulateOptions, pace: TraceTiming | None) -> Trace:
    trace = read_trace(read_input(options.trace), shown(options.trace), pace)
    if options.limit is not None:
        trace = trace.first(options.limit)
    return trace if options.speed == 1 else trace.faster(options.speed)


def _policies(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in POLICIES:
            known = f"Policies are: {', '.join(POLICIES)}."
            raise UsageError(f'there is no policy "{name}"', f"{did_you_mean(name, POLICIES)} {known}".strip())
    if not names:
        raise UsageError("no policy was named", f"Policies are: {', '.join(POLICIES)}.")
    return names


def _pace(options: SimulateOptions) -> TraceTiming | None:
    if not (math.isfinite(options.speed) and options.speed > 0):
        raise UsageError(f"--speed {options.speed:g} is not a number above 0", "Example: --speed 2")
    if options.every is None and options.lasting is None:
        return None
    if options.every is None or options.lasting is None:
        raise UsageError("--every and --lasting go together", "Example: --every 30 --lasting 3600")
    if not (0 <= options.every <= 1e6 and 0 <= options.lasting <= 1e9):
        raise UsageError(
            "--every and --lasting are seconds, at most 1,000,000 and 1,000,000,000",
            "Example: --every 30 --lasting 3600",
        )
    return TraceTiming(options.every, options.lasting)


def _check_plot(plot: str | None) -> None:
    """Raise for a plot that cannot be written before a long run rather than after it."""
    if plot is None:
        return
    if not plot.endswith(".svg"):
        raise UsageError(f"{plot} does not end in .svg", "A plot is an SVG picture: --plot simulation.svg")
    if not Path(plot).parent.is_dir():
        raise UsageError(f"there is no directory {Path(plot).parent}", "Create it first, or name another file.")


def _level(rule: str | None, domains: Domains) -> str | None:
    if rule == NO_RULE:
        return None
    if rule is not None:
        return domains.topology.names[level_depth(domains, rule) - 1]
    depth = default_depth(domains)
    if not depth:
        raise UsageError(
            "there are no levels for the rule that gives jobs their constraints",
            "Name the levels, coarsest first: --levels spine=LABEL,rack=LABEL, or pass --rule none.",
        )
    return domains.topology.names[depth - 1]


class _Ticker:
    """The progress on standard error: one changing line on a terminal, a line at intervals elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._pause_s = 0.5 if self._live else 10.0
        self._last = time.monotonic()
        self._width = 0

    def tell(self, policy: str, jobs: int, done: int, time_s: float) -> None:
        now = time.monotonic()
        if now - self._last < self._pause_s:
            return
        self._last = now
        words = f"{policy}: {done:,} of {count(jobs, 'job')} replayed, {duration(time_s)} of the trace"
        if self._live:
            sys.stderr.write(f"\r{words.ljust(self._width)}")
            self._width = len(words)
        else:
            sys.stderr.write(f"{words}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """End an unfinished line."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()


def _print(options: SimulateOptions, world: ClusterInput, result: Result) -> None:
    match options.output:
        case Output.JSON | Output.YAML:
            data = simulation_json(result, trace=shown(options.trace), pool=world.pool.name)
            show_data(data, options.output)
        case Output.NAME:
            show(one.policy for one in result.figures)
        case _:
            show(_lines(world, result, screen(), wide=options.output is Output.WIDE))


def _lines(world: ClusterInput, result: Result, style: Style, *, wide: bool) -> Iterator[str]:
    jobs, nodes = count(len(result.jobs), "job"), count(len(result.rule.domains), "node")
    where = f"{nodes} with {result.gpus:,} free GPUs"
    yield f"{jobs} of {result.gpu_hours:,.1f} GPU hours on {where}   pool {visible(world.pool.name)}"
    for name, words in (
        ("rule", result.rule.words() + ("  (added: no trace records topology)" if result.rule.level else "")),
        ("queue", queue_words(result)),
    ):
        yield from wrapped(words, style.width, " " * 9, f"  {name:<5}  ")
    yield ""
    rows = [["", *(one.policy.upper() for one in result.figures)], *_rows(result, wide=wide)]
    yield from (f"  {line}" for line in table(rows, numbers=frozenset(range(1, len(rows[0]))), gap=3))
    yield ""
    yield from wrapped(f"fragmentation = {fragmentation_words(result)}.", style.width)
    if comparison := _comparison(result.figures):
        yield comparison


def _rows(result: Result, *, wide: bool) -> Iterator[list[str]]:
    found = result.figures
    for name, attribute in (("mean", "mean"), ("median", "median"), ("95 %", "p95"), ("longest", "longest")):
        yield [f"wait, {name}", *(duration(getattr(one.waits, attribute)) if one.waits else "-" for one in found)]
    yield ["makespan", *(duration(one.makespan_s) for one in found)]
    for name, attribute in (
        ("GPU use", "gpu_use"),
        ("GPU use while jobs wait", "gpu_use_waiting"),
        ("fragmentation", "fragmentation"),
        ("fragmentation while jobs wait", "fragmentation_waiting"),
    ):
        yield [name, *(_percent(getattr(one, attribute)) for one in found)]
    if any(one.preferring for one in found):
        yield [
            f"{result.rule.coarser} preferred, missed",
            *(f"{one.missed} of {one.preferring} ({_percent(one.missed_share)})" for one in found),
        ]
    if any(one.started < one.jobs for one in found):
        yield ["never started", *(f"{one.jobs - one.started:,}" for one in found)]
    yield ["violations", *(str(one.violations) for one in found)]
    if wide:
        yield ["policy calls", *(f"{one.asked:,}" for one in found)]
        yield ["undecided", *(f"{one.undecided:,}" for one in found)]
        yield [
            "placements per second",
            *(f"{one.started / one.elapsed_s:,.0f}" if one.elapsed_s else "-" for one in found),
        ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}".replace("%", " %")


def _comparison(found: Sequence[Figures]) -> str:
    """Return how the waits of the others compare with the first policy, where both started the same jobs."""
    first = found[0]
    if first.waits is None or not first.waits.mean:
        return ""
    parts = [
        f"{one.policy} {one.waits.mean / first.waits.mean - 1:+.1%}".replace("%", " %")
        for one in found[1:]
        if one.waits and one.started == first.started
    ]
    return f"Mean wait against {first.policy}: {', '.join(parts)}." if parts else ""
