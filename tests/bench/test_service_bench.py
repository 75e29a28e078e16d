"""The measurement of the service works with a real process, on tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.served import SHUT, served, submission
from bench.service import Growth, Latency, Results, Throughput, by_hand, markdown

from bench import run

pytestmark = pytest.mark.slow("runs the benchmark of a service, with its processes")


def test_one_command_measures_the_service_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers, tables = tmp_path / "numbers.json", tmp_path / "tables.md"
    tiny = ["--nodes", "32", "--workflows", "4", "--tasks", "2", "--clients", "3", "--requests", "6"]
    outputs = ["--json", str(numbers), "--markdown", str(tables)]
    assert run.main(["service", *tiny, "--finished-tasks", "12", *outputs]) == 0
    assert capsys.readouterr().out == tables.read_text()
    found = json.loads(numbers.read_text())
    assert 0 < found["throughput"]["submitted_s"] <= found["throughput"]["finished_s"]
    assert [(each["what"], each["clients"]) for each in found["latencies"]] == [
        ("POST /workflows, one text", 1),
        ("POST /workflows, one text", 3),
        ("POST /workflows, different texts", 1),
        ("POST /workflows, different texts", 3),
        ("GET /workflows", 1),
        ("GET /workflows", 3),
    ]
    assert [tasks for tasks, _ in found["growth"]["samples"]] == [0, 2, 10, 12]


def test_one_command_measures_workflows_of_several_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = tmp_path / "numbers.json"
    assert run.main(["scaling", "--sizes", "3", "--json", str(numbers)]) == 0
    assert [(each["tasks"], each["shape"]) for each in json.loads(numbers.read_text())] == [
        (3, "single tasks"),
        (3, "one group"),
    ]
    assert "| 3 | one group |" in capsys.readouterr().out


def test_what_is_submitted_to_the_pool_that_is_shut_is_stored_and_starts_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "service", 32) as service, service.client() as client:
        ident = client.post("/workflows?force=true", json=submission(2, SHUT)).json()["id"]
        view = client.get(f"/workflows/{ident}").json()
        assert [task["node"] for task in view["groups"][0]["tasks"]] == [None, None]
        with pytest.raises(RuntimeError, match="nowhere"):
            client.get("/workflows/nowhere")


def test_a_process_by_hand_takes_time() -> None:
    assert by_hand(["/bin/true"], gangs=1, tasks=2) > 0


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ([(0, 50_000_000), (2_000, 100_000_000), (10_000, 108_000_000)], "| 100,000 | 198 | extrapolated: 1.00 kB"),
        ([(0, 50_000_000), (2_000, 100_000_000), (100_000, 198_000_000)], "| 100,000 | 198 | measured |"),
    ],
)
def test_memory_that_was_not_measured_is_told_as_extrapolated(samples: list[tuple[int, int]], told: str) -> None:
    text = markdown(
        Results("3.11", 2, _timed(), [Latency("GET /workflows", 50, 100, 9.5, 1, 2, 3, 4)], Growth(samples))
    )
    assert told in text
    assert text.count("extrapolated") == told.count("extrapolated")


def test_the_overhead_of_a_task_is_told_against_the_same_process_by_hand() -> None:
    text = markdown(Results("3.11", 2, _timed(), [], Growth([(0, 1), (8, 2)])))
    assert "| workflows per second | 10.0 |" in text
    assert "| a task | 12.50 ms | 5.0 x |" in text
    assert "| overhead for each task | 10.00 ms | 4.0 x |" in text


def _timed() -> Throughput:
    return Throughput(
        nodes=1280,
        workflows=1000,
        tasks=8000,
        submitted_s=5.0,
        finished_s=100.0,
        own_cpu_s=20.0,
        below_cpu_s=60.0,
        by_hand_task_s=0.0025,
        watched_task_s=0.01,
    )
