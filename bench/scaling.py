"""The time of a task against the number of tasks of its workflow: as groups of one task, and as one group."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import table
from bench.served import OPEN, Served, served, until
from bench.timing import say

SIZES = (10, 100, 1_000, 10_000)
_LONGEST_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Scale:
    """One workflow: the seconds until it was accepted, and from then until nothing was left of it."""

    shape: str
    tasks: int
    submitted_s: float
    finished_s: float
    own_cpu_s: float

    @property
    def task_s(self) -> float:
        """Seconds for each task."""
        return self.finished_s / self.tasks


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the requested files."""
    parser = argparse.ArgumentParser(prog="python -m bench scaling", description=__doc__)
    help_ = "numbers of tasks, separated by commas"
    parser.add_argument("--sizes", type=_sizes, default=SIZES, help=help_)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    options = parser.parse_args(arguments)
    found = list(measure(options.sizes))
    text = markdown(found)
    sys.stdout.write(text)
    if options.markdown:
        options.markdown.write_text(text)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    return 0


def measure(sizes: Sequence[int]) -> Iterator[Scale]:
    """Run a workflow of each size in both shapes, each on its own service."""
    for size in sizes:
        for shape, groups in (("single tasks", _singles(size)), ("one group", [_group(size)])):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                with served(Path(folder) / "scaling", 64) as service:
                    found = _run(service, shape, size, groups)
                say(f"{size:,} tasks, {shape}: {found.task_s * 1000:.1f} ms a task")
                yield found


def markdown(found: Sequence[Scale]) -> str:
    """Return the results as a table."""
    rows = (
        (
            f"{each.tasks:,}",
            each.shape,
            f"{each.submitted_s:.1f} s",
            f"{each.finished_s:.1f} s",
            f"{each.task_s * 1000:.1f} ms",
            f"{each.own_cpu_s / each.tasks * 1000:.1f} ms",
        )
        for each in found
    )
    head = ("tasks", "shape", "submitted", "finished", "a task", "processor time of the service, a task")
    return table("Tasks of one workflow", head, rows)


def _run(service: Served, shape: str, size: int, groups: list[dict[str, object]]) -> Scale:
    workflow = {"name": "bench", "groups": groups, "resources": {"default": {"gpu": 0, "cpu": 0}}}
    body = {"source": json.dumps({"version": 2, "workflow": workflow}), "pool": OPEN}
    before, _ = service.cpu_s()
    begun = time.perf_counter()
    with service.client() as client:
        client.post("/workflows", json=body)
        submitted = time.perf_counter()
        until(lambda: not client.get("/workflows", params={"finished": False}).json()["items"], _LONGEST_S)
        finished = time.perf_counter()
        [row] = client.get("/workflows").json()["items"]
    if row["status"] != "COMPLETED":
        raise RuntimeError(f"{row['id']} ended as {row['status']}: {row['message']}")
    return Scale(shape, size, submitted - begun, finished - submitted, service.cpu_s()[0] - before)


def _task(number: int, *, lead: bool) -> dict[str, object]:
    return {"name": f"t{number}", "image": "any", "lead": lead, "command": ["/bin/true"]}


def _singles(size: int) -> list[dict[str, object]]:
    return [{"name": f"g{number}", "tasks": [_task(number, lead=True)]} for number in range(size)]


def _group(size: int) -> dict[str, object]:
    tasks = [_task(number, lead=number == 0) for number in range(size)]
    return {"name": "g", "barrier": False, "ignoreNonleadStatus": False, "tasks": tasks}


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))
