"""One command that measures everything and writes the results."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bench import plot, scaling, service, startup
from bench.cluster import apply, operator
from bench.engine import deltas, kueue_side, memory, placement, snapshot_read
from bench.engine.cases import SIZES, write_case
from bench.report import Comparison, Results, compare, markdown
from bench.timing import say

_EPILOG = (
    "`python -m bench service` and `python -m bench scaling` measure the service, `python -m bench web` its page, "
    "`python -m bench operator` the operator; they have options of their own."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the requested files; a missed goal is reported, with exit code 0."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["service"]:
        return service.main(given[1:])
    if given[:1] == ["scaling"]:
        return scaling.main(given[1:])
    if given[:1] == ["web"]:
        from bench import web  # noqa: PLC0415 - it needs a browser

        return web.main(given[1:])
    if given[:1] == ["operator"]:
        return operator.main(given[1:])
    options = _options(given)
    results = measure(options)
    sys.stdout.write(markdown(results))
    if options.markdown:
        options.markdown.write_text(markdown(results))
    if options.json:
        options.json.write_text(json.dumps(asdict(results), indent=2) + "\n")
    if options.plot:
        plot.draw(results, options.plot)
    return 0


def measure(options: argparse.Namespace) -> Results:
    """Take all measurements in sequence."""
    program = None if options.no_kueue else kueue_side.binary()
    comparisons: list[Comparison] = []
    changes: dict[int, deltas.Deltas] = {}
    for nodes in options.sizes:
        compared, changed = _one_size(nodes, program, options)
        comparisons.append(compared)
        changes[nodes] = changed
    largest = max(options.sizes)
    say(f"{largest:,} nodes: memory")
    held = memory.measure(largest)
    say(f"reading a snapshot of {options.snapshot_nodes:,} nodes")
    read = snapshot_read.measure(options.snapshot_nodes, 2 * options.snapshot_nodes * 1000 // 1024, options.runs)
    say("coterie --help")
    started = startup.measure(4 * options.runs)
    applied = apply.measure(options.runs, starts=min(3, options.runs)) if options.lab else None
    return Results(
        python=platform.python_version(),
        numpy=np.__version__,
        comparisons=comparisons,
        deltas=changes,
        memory=held,
        reading=read,
        startup=started,
        applying=applied,
    )


def _one_size(nodes: int, program: Path | None, options: argparse.Namespace) -> tuple[Comparison, deltas.Deltas]:
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case.json"
        write_case(case, nodes, seconds=options.seconds, cold_runs=options.runs)
        say(f"{nodes:,} nodes: Coterie")
        ours = placement.measure(case, seconds=options.seconds, cold_runs=options.runs)
        theirs = None
        if program is not None:
            say(f"{nodes:,} nodes: Kueue")
            theirs = kueue_side.ask(program, case)
    say(f"{nodes:,} nodes: {options.placements:,} placements in a row")
    return compare(nodes, ours, theirs), deltas.measure(ours.capacity.domains, options.placements, min(3, options.runs))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,...", help="cluster sizes in nodes")
    parser.add_argument("--seconds", type=float, default=2.0, help="time to repeat each warm question for")
    parser.add_argument("--runs", type=int, default=5, help="repetitions of what is slow or cold")
    parser.add_argument("--placements", type=int, default=1000, help="placements in a row")
    parser.add_argument("--snapshot-nodes", type=int, default=10_240, help="nodes of the kubectl snapshot")
    parser.add_argument("--no-kueue", action="store_true", help="measure Coterie's side only")
    parser.add_argument("--lab", action="store_true", help="measure on a real cluster too; see docs/lab.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables here too")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the times here (.svg or .png; needs matplotlib)"
    )
    return parser.parse_args(arguments)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
