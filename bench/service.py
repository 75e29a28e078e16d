"""The speed of the service: workflows through its queue, concurrent requests, and memory after many tasks."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx2

from bench.report import table
from bench.served import SHUT, Served, served, submission, until
from bench.timing import say

# The memory is reported for this many tasks, measured or extrapolated.
TASKS_GOAL = 100_000
_SUBMITTERS = 4
_LONGEST_S = 6 * 3600.0
# The minimum of any supervisor in Python: it starts a process and waits for it.
_WATCHER = "import os; os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"


@dataclass(frozen=True, slots=True)
class Throughput:
    """The seconds of workflows from the first submission until nothing is left, and of the same processes alone."""

    nodes: int
    workflows: int
    tasks: int
    submitted_s: float
    finished_s: float
    own_cpu_s: float
    below_cpu_s: float  # of the processes that the service started
    by_hand_task_s: float
    watched_task_s: float  # without the service, each started by a Python that waits for it

    @property
    def task_s(self) -> float:
        """Seconds for each task."""
        return self.finished_s / self.tasks


@dataclass(frozen=True, slots=True)
class Latency:
    """The response times in milliseconds under a number of clients with continuous requests.

    `cpu_ms` is the processor time of the service for each of them.
    """

    what: str
    clients: int
    requests: int
    per_second: float
    median_ms: float
    p99_ms: float
    longest_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The bytes of the service's process after numbers of finished tasks, each time while idle."""

    samples: list[tuple[int, int]]

    @property
    def per_task(self) -> float:
        """Bytes that a finished task adds, from the first sample with tasks to the last."""
        (first, low), (last, high) = self.samples[1], self.samples[-1]
        return (high - low) / (last - first) if last > first else 0.0

    def at(self, tasks: int) -> float:
        """Return the bytes after that many tasks, extrapolated in a straight line."""
        last, high = self.samples[-1]
        return high + self.per_task * (tasks - last)


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements of one run."""

    python: str
    cores: int
    throughput: Throughput
    latencies: list[Latency]
    growth: Growth


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables, and write the requested files."""
    options = _options(arguments)
    results = measure(options)
    sys.stdout.write(markdown(results))
    if options.markdown:
        options.markdown.write_text(markdown(results))
    if options.json:
        options.json.write_text(json.dumps(asdict(results), indent=2) + "\n")
    return 0


def measure(options: argparse.Namespace) -> Results:
    """Take all measurements, each on its own service."""
    # The measurements count, even if some file cannot be removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        say(f"requests by {options.clients} clients")
        with served(Path(folder) / "requests", options.nodes) as service:
            latencies = list(ask(service, options.clients, options.requests, options.tasks))
        for one in latencies:
            say(f"{one.what}, {one.clients} clients: median {one.median_ms:.0f} ms, 99 % {one.p99_ms:.0f} ms")
        say(f"{options.workflows:,} workflows of {options.tasks} tasks")
        with served(Path(folder) / "queue", options.nodes) as service:
            throughput, growth = run_through(service, options)
    return Results(platform.python_version(), os.cpu_count() or 1, throughput, latencies, growth)


def run_through(service: Served, options: argparse.Namespace) -> tuple[Throughput, Growth]:
    """Run workflows until a number of tasks has finished; one batch of them is timed, after a smaller one."""
    count, tasks = options.workflows, options.tasks
    samples = [(0, service.resident())]
    _batch(service, max(1, count // 4), tasks)
    samples.append((max(1, count // 4) * tasks, service.resident()))
    hand = by_hand(["/bin/true"], count // 2 or 1, tasks)
    before = service.cpu_s()
    submitted_s, finished_s = _batch(service, count, tasks)
    say(f"{count / finished_s:.2f} workflows per second; now by hand")
    own, below = (now - then for now, then in zip(service.cpu_s(), before, strict=True))
    # Half before and half after, so that a busy moment affects both sides.
    hand = (hand + by_hand(["/bin/true"], count // 2 or 1, tasks)) / 2
    watched = by_hand([sys.executable, "-I", "-S", "-c", _WATCHER], max(1, count // 10), tasks)
    samples.append((samples[-1][0] + count * tasks, service.resident()))
    while (done := samples[-1][0]) < options.finished_tasks:
        more = min(count, -(-(options.finished_tasks - done) // tasks))
        say(f"{done:,} of {options.finished_tasks:,} tasks have finished")
        _batch(service, more, tasks)
        samples.append((done + more * tasks, service.resident()))
    timed = Throughput(options.nodes, count, count * tasks, submitted_s, finished_s, own, below, hand, watched)
    return timed, Growth(samples)


def by_hand(command: Sequence[str], gangs: int, tasks: int) -> float:
    """Start the processes of one gang after another without the service; return the seconds for each process."""
    with tempfile.TemporaryFile() as log:
        begun = time.perf_counter()
        for _ in range(gangs):
            started = [
                subprocess.Popen(  # noqa: S603 - listed above
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
                for _ in range(tasks)
            ]
            for process in started:
                process.wait()
        return (time.perf_counter() - begun) / (gangs * tasks)


def ask(service: Served, clients: int, requests: int, tasks: int) -> Iterator[Latency]:
    """Submit and list, first with one client and then with many; submitted workflows wait and start no process."""
    body = submission(tasks, SHUT)
    numbers = itertools.count()

    def another() -> dict[str, str]:
        """Return a submission with a name of its own: the service compiles a repeated text only once."""
        return {**body, "source": body["source"].replace('"bench"', f'"bench{next(numbers)}"')}

    kinds: tuple[tuple[str, Callable[[httpx2.Client], object]], ...] = (
        ("POST /workflows, one text", lambda client: client.post("/workflows?force=true", json=body)),
        ("POST /workflows, different texts", lambda client: client.post("/workflows?force=true", json=another())),
        ("GET /workflows", lambda client: client.get("/workflows")),
    )
    for what, run in kinds:
        for together, asked in ((1, max(1, requests // 10)), (clients, requests)):
            yield _timed(what, service, run, together, asked)


def _timed(what: str, service: Served, run: Callable[[httpx2.Client], object], clients: int, requests: int) -> Latency:
    ready = threading.Barrier(clients)

    def one() -> list[tuple[float, float]]:
        found = []
        try:
            with service.client() as client:
                client.get("/whoami")  # the connection is open before the clock starts
                ready.wait()
                for _ in range(max(1, requests // clients)):
                    begun = time.perf_counter()
                    run(client)
                    found.append((begun, time.perf_counter()))
        except BaseException:
            ready.abort()  # the others would wait for ever
            raise
        return found

    before, _ = service.cpu_s()
    with ThreadPoolExecutor(clients) as pool:
        spans = [span for each in [pool.submit(one) for _ in range(clients)] for span in each.result()]
    took = sorted((end - begun) * 1000 for begun, end in spans)
    whole = max(end for _, end in spans) - min(begun for begun, _ in spans)
    middle, late = took[len(took) // 2], took[min(len(took) - 1, len(took) * 99 // 100)]
    cpu_ms = (service.cpu_s()[0] - before) / len(took) * 1000
    return Latency(what, clients, len(took), len(took) / whole, middle, late, took[-1], cpu_ms)


def _batch(service: Served, workflows: int, tasks: int) -> tuple[float, float]:
    """Run workflows; return the seconds until all were submitted, and until all had finished."""
    body = submission(tasks)
    begun = time.perf_counter()

    def some(count: int) -> None:
        with service.client() as client:
            for _ in range(count):
                client.post("/workflows", json=body)

    with ThreadPoolExecutor(_SUBMITTERS) as pool:
        list(pool.map(some, [len(range(start, workflows, _SUBMITTERS)) for start in range(_SUBMITTERS)]))
    submitted = time.perf_counter()
    with service.client() as client:
        until(lambda: not _rows(client, finished=False), _LONGEST_S)
        finished = time.perf_counter()
        if failed := [row for row in _rows(client, finished=True) if row["status"] != "COMPLETED"]:
            raise RuntimeError(f"{failed[0]['id']} ended as {failed[0]['status']}: {failed[0]['message']}")
    return submitted - begun, finished - begun


def _rows(client: httpx2.Client, *, finished: bool) -> list[dict[str, object]]:
    query = {"finished": finished, "limit": 1000 if finished else 1}
    found: list[dict[str, object]] = client.get("/workflows", params=query).json()["items"]
    return found


def markdown(results: Results) -> str:
    """Return all results as tables."""
    latency = (
        "request",
        "clients",
        "requests",
        "per second",
        "median, ms",
        "99 %, ms",
        "longest, ms",
        "processor time, ms",
    )
    return "\n".join(
        [
            table("Workflows through the queue", ("what", "", "compared with by hand"), _queue(results.throughput)),
            table(f"Requests, {results.cores} cores", latency, _latencies(results.latencies)),
            table("Memory of the service", ("tasks that have finished", "MB", ""), _memory(results.growth)),
        ]
    )


def _queue(found: Throughput) -> Iterator[Sequence[object]]:
    hand = found.by_hand_task_s
    what = f"{found.workflows:,} workflows of {found.tasks // found.workflows} tasks on {found.nodes:,} nodes"
    yield what, f"{found.finished_s:.1f} s, submitted within {found.submitted_s:.1f} s", ""
    yield "workflows per second", f"{found.workflows / found.finished_s:.1f}", ""
    for name, seconds in (
        ("a task", found.task_s),
        ("the same process by hand", hand),
        ("by hand, watched by a Python each", found.watched_task_s),
        ("overhead for each task", found.task_s - hand),
        ("processor time of the service, a task", found.own_cpu_s / found.tasks),
        ("processor time of what it starts, a task", found.below_cpu_s / found.tasks),
    ):
        yield name, f"{seconds * 1000:.2f} ms", f"{seconds / hand:.1f} x"


def _latencies(found: Sequence[Latency]) -> Iterator[Sequence[object]]:
    for one in found:
        times = (f"{value:.1f}" for value in (one.median_ms, one.p99_ms, one.longest_ms, one.cpu_ms))
        yield one.what, one.clients, f"{one.requests:,}", f"{one.per_second:.0f}", *times


def _memory(growth: Growth) -> Iterator[Sequence[object]]:
    for tasks, size in growth.samples:
        yield f"{tasks:,}", f"{size / 1e6:.0f}", "measured"
    if growth.samples[-1][0] < TASKS_GOAL:
        grown = f"extrapolated: {growth.per_task / 1e3:.2f} kB for each task"
        yield f"{TASKS_GOAL:,}", f"{growth.at(TASKS_GOAL) / 1e6:.0f}", grown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench service", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1280, help="nodes of the simulated pool, 16 in a rack")
    parser.add_argument("--workflows", type=int, default=1000, help="workflows through the queue")
    parser.add_argument("--tasks", type=int, default=8, help="tasks of a workflow, at most 16")
    parser.add_argument("--clients", type=int, default=50, help="clients at once")
    parser.add_argument("--requests", type=int, default=1000, help="requests of each kind by all of them")
    help_ = f"tasks to finish before memory is measured; fewer than {TASKS_GOAL:,} are extrapolated"
    parser.add_argument("--finished-tasks", type=int, default=10_000, metavar="N", help=help_)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables here too")
    return parser.parse_args(arguments)
