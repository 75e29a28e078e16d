"""The measurements run on tiny sizes, and their checks of answers detect wrong ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bench.engine import deltas, kueue_side, placement
from bench.engine.cases import REQUESTS, TOPOLOGY, gang_of, read_case, write_case
from bench.engine.quality import Quality, judge, no_worse
from bench.engine.snapshot import kubectl_json
from bench.report import compare, goal

from bench import run
from coterie.placement.capacity import Capacity
from coterie.placement.engine import place
from coterie.sources.kubectl import read_kubectl
from coterie.topology.domains import Domains

pytestmark = pytest.mark.slow("runs every benchmark once")

BLOCK, RACK, PREFERRED, IMPOSSIBLE = REQUESTS


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "case.json"
    write_case(file, 512, seconds=0, cold_runs=1)
    return file


@pytest.fixture(scope="module")
def capacity(case: Path) -> Capacity:
    return Capacity.now(Domains.of(read_case(case)[0], TOPOLOGY))


def test_a_case_is_the_same_every_time_it_is_written(case: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    write_case(again, 512, seconds=0, cold_runs=1)
    assert again.read_text() == case.read_text()


def test_half_of_the_nodes_of_a_case_are_partly_used(case: Path) -> None:
    cluster, requests = read_case(case)
    assert (len(cluster), len(cluster.pods), requests) == (512, 256, list(REQUESTS))


def test_coterie_answers_every_request_soundly(case: Path) -> None:
    compared = compare(512, placement.measure(case, seconds=0, cold_runs=1), None)
    assert [line.ours.placed for line in compared.lines] == [True, True, True, False]
    assert all(line.no_worse for line in compared.lines)


def test_a_required_level_that_is_not_held_is_a_fault(capacity: Capacity) -> None:
    free = capacity.fit(gang_of(RACK).all_tasks()[0].shape).fits
    nodes = {capacity.domains.name(position): int(free[position]) for position in (0, 500)}
    faults = judge(RACK, nodes, capacity).faults
    assert [fault for fault in faults if "required" in fault] == ["spread over 2 domains of a required level"]
    assert [fault for fault in faults if "placed" in fault]


def test_a_node_that_is_given_too_much_is_a_fault(capacity: Capacity) -> None:
    assert "more nvidia.com/gpu than a node has free" in judge(RACK, {"n0": 64}, capacity).faults


def test_a_refusal_of_what_fits_is_a_fault(capacity: Capacity) -> None:
    assert judge(IMPOSSIBLE, None, capacity).faults == ()
    assert judge(RACK, None, capacity).faults


@pytest.mark.parametrize(
    ("ours", "theirs", "good"),
    [
        (Quality(placed=True, racks=2), Quality(placed=True, racks=2), True),
        (Quality(placed=True, racks=3), Quality(placed=True, racks=2), False),
        (Quality(placed=True, racks=2, nodes=9), Quality(placed=True, racks=2, nodes=8), False),
        (Quality(placed=True, racks=2, nodes=8), Quality(placed=True, racks=3, nodes=8), True),
        (Quality(placed=False), Quality(placed=True, racks=2), False),
        (Quality(placed=True, racks=2), Quality(placed=False), True),
        (Quality(placed=True, faults=("bad",)), Quality(placed=False), False),
    ],
)
def test_an_answer_is_as_good_as_another_when_it_is_sound_in_no_more_racks_and_on_no_more_nodes(
    ours: Quality, theirs: Quality, *, good: bool
) -> None:
    assert no_worse(ours, theirs) is good


def test_many_placements_and_releases_leave_the_capacity_that_a_rebuild_gives(capacity: Capacity) -> None:
    done = deltas.measure(capacity.domains, placements=60, runs=1)
    assert done.exact
    assert done.refused < 60


def test_the_snapshot_reads_as_the_cluster_it_describes() -> None:
    cluster = read_kubectl(kubectl_json(32, 40), "bench.json").cluster
    assert (len(cluster), len(cluster.pods)) == (32, 40)
    assert len(set(cluster.column("topology.kubernetes.io/rack").values)) == 2
    assert cluster.ready.all()
    assert sum(pod.daemon for pod in cluster.pods) == 32


@pytest.mark.parametrize(("nodes", "times"), [(640, 0.5), (2_560, 1), (10_240, 10), (102_400, 100)])
def test_the_goal_grows_with_the_cluster(nodes: int, times: float) -> None:
    assert goal(nodes) == times


def test_without_go_only_our_side_is_measured_and_that_is_said_loudly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert kueue_side.binary() is None
    assert "*** Go is not installed: Kueue is NOT measured" in capsys.readouterr().err


def test_one_command_measures_everything_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers, tables = tmp_path / "numbers.json", tmp_path / "tables.md"
    quick = ["--sizes", "512", "--seconds", "0", "--runs", "1", "--placements", "5", "--snapshot-nodes", "64"]
    assert run.main([*quick, "--no-kueue", "--json", str(numbers), "--markdown", str(tables)]) == 0
    assert capsys.readouterr().out == tables.read_text()
    assert [line["request"] for line in json.loads(numbers.read_text())["comparisons"][0]["lines"]] == [
        request.name for request in REQUESTS
    ]


def test_a_gang_of_a_request_has_all_its_pods(capacity: Capacity) -> None:
    assert placement.pods_per_node(place(gang_of(IMPOSSIBLE), capacity)) is None
    assert len(gang_of(PREFERRED).all_tasks()) == PREFERRED.pods
    assert len(gang_of(BLOCK).all_tasks()) == BLOCK.pods
