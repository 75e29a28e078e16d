"""Causes of refusals, and totals, on a realistic fleet: every command reports the same of the same nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command_lines import call, data, written
from tests.fleets import gb200

FLEET = str(Path(__file__).parents[2] / "examples/13-gb200-fleet/snapshot.json")
POOLS = f"""\
backends:
  lab: {{scheduler: local, cluster: {FLEET}}}
pools:
  halls:
    backend: lab
    node_selector: {{{gb200.ZONE}: hall-1}}
    topology_keys: [{{key: spine, label: {gb200.SPINE}}}, {{key: rack, label: {gb200.RACK}}}]
"""


def flow(folder: Path, resource: str, tasks: int = 1) -> str:
    """Write a workflow with one group of equal tasks."""
    listed = "".join(
        f"\n    - {{name: t{number}, lead: {str(not number).lower()}, image: i, command: [run], resource: r}}"
        for number in range(tasks)
    )
    text = f"workflow:\n  name: w\n  groups:\n  - name: g\n    tasks:{listed}\n  resources:\n    r: {{{resource}}}\n"
    return written(folder, text, "w.yaml")


def because(folder: Path, resource: str, tasks: int = 1, *more: str) -> str:
    """Return the counted causes of a refusal on the fleet."""
    done = call("plan", flow(folder, resource, tasks), "--cluster", FLEET, *more)
    found = re.search(r"^ +because  (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found[1]


NO_GPU = "10 nodes have no GPU"
DEDICATED = "8 nodes have the taint dedicated, not tolerated"


@pytest.mark.parametrize(
    ("resource", "tasks", "why"),
    [
        ("gpu: 8", 1, f"82 nodes have 3 to 4 GPUs, 8 asked; {NO_GPU}; {DEDICATED}"),
        (
            "gpu: 4, cpu: 160",
            1,
            f"81 nodes have 144 CPU, 160 asked; {NO_GPU}; {DEDICATED}; r02-n04 has 3 GPUs, 4 asked",
        ),
        ("gpu: 4, memory: 900Gi", 1, "81 nodes have 883 GiB memory, 900 GiB asked"),
        ("cpu: 200", 1, "82 nodes have the taint nvidia.com/gpu, not tolerated"),
        ("cpu: 200", 1, "7 nodes have 64 CPU, 200 asked"),
        ("gpu: 4", 90, "r02-n04 has 3 GPUs, 4 asked; 81 nodes take 1 task each"),
    ],
)
def test_a_refusal_says_what_is_offered_against_what_is_asked(
    tmp_path: Path, resource: str, tasks: int, why: str
) -> None:
    assert why in because(tmp_path, resource, tasks)


def test_what_waits_for_nodes_out_of_service_names_them(tmp_path: Path) -> None:
    told = because(tmp_path, "gpu: 4", 78)
    assert "2 nodes are cordoned" in told
    assert "r01-n12 is not ready" in told


def test_a_level_that_holds_too_few_is_told_by_the_nodes_of_its_best_domain(tmp_path: Path) -> None:
    told = because(tmp_path, "gpu: 4, topology: [{key: rack}]", 18)
    assert told == "in hall-1/s1/r01, r01-n12 is not ready; 17 nodes take 1 task each"


def test_json_has_the_counts_as_data(tmp_path: Path) -> None:
    [group] = data("plan", flow(tmp_path, "gpu: 8"), "--cluster", FLEET)["groups"]
    assert group["refusal"]["counted"] == {"task": "t0", "alike": 1, "domain": [], "nodes": 100, "good": 0, "room": 0}
    assert group["refusal"]["causes"][0] == {
        "cause": "TooSmall",
        "nodes": 82,
        "names": ["r01-n01", "r01-n02", "r01-n03"],
        "resource": "nvidia.com/gpu",
        "offered": [3, 4],
        "asked": 8,
        "detail": None,
    }


def test_check_tells_nodes_with_gpus_from_others_first() -> None:
    lines = call("check", FLEET).stdout.splitlines()
    assert lines[:3] == [
        "pool default, 100 nodes: 90 with GPUs, 10 without",
        "  1 not ready: r01-n12",
        "  2 cordoned: r03-n05,r05-n17",
    ]
    found = data("check", FLEET)
    assert (found["nodes"], found["gpu_nodes"]) == (100, 90)
    assert (found["not_ready"], found["cordoned"]) == (list(gb200.NOT_READY), list(gb200.CORDONED))


def test_labels_that_nodes_without_gpus_lack_are_no_fault_of_the_fleet() -> None:
    found = [one for one in data("check", FLEET)["findings"] if one["code"] == "LabelMissing"]
    assert [(one["severity"], tuple(one["nodes"])) for one in found if one["severity"] != "info"] == [
        ("warning", gb200.WITHOUT_CLIQUE)
    ]
    assert "1 of 90 nodes with GPUs" in found[0]["message"]


def test_check_names_a_node_that_offers_fewer_gpus_than_its_twins() -> None:
    [found] = [one for one in data("check", FLEET)["findings"] if one["code"] == "FewerGpus"]
    assert tuple(found["nodes"]) == gb200.SHORT_OF_A_GPU
    assert found["message"] == "r02-n04 offers 3 GPUs, where 89 of the 90 nodes of kind NVIDIA-GB200 gb200-4x offer 4"


def twins(*nodes: str) -> str:
    return "topology_keys: [{key: rack, label: r}]\nnodes:\n" + "".join(f"- {{{node}}}\n" for node in nodes)


@pytest.mark.parametrize(
    ("nodes", "short"),
    [
        ([f"name: n{number}, gpu: {gpus}, domains: {{rack: a}}" for number, gpus in enumerate((8, 8, 7))], ["n2"]),
        ([f"name: n{number}, gpu: {gpus}, domains: {{rack: a}}" for number, gpus in enumerate((8, 7))], []),
        ([f"name: n{number}, gpu: {gpus}, domains: {{rack: a}}" for number, gpus in enumerate((8, 8, 0))], []),
        (
            [
                f"name: n{number}, gpu: {gpus}, domains: {{rack: a}}, labels: {{nvidia.com/gpu.product: H}}"
                for number, gpus in enumerate((8, 8, 0))
            ],
            ["n2"],
        ),
        (
            [
                f"name: n{number}, gpu: {gpus}, domains: {{rack: a}}, labels: {{nvidia.com/gpu.product: {kind}}}"
                for number, (gpus, kind) in enumerate(((8, "H"), (8, "H"), (4, "L")))
            ],
            [],
        ),
    ],
    ids=["rack", "no-majority", "no-gpu", "product", "other-product"],
)
def test_twins_are_nodes_of_one_kind_or_else_of_one_domain(tmp_path: Path, nodes: list[str], short: list[str]) -> None:
    found = data("check", written(tmp_path, twins(*nodes)))["findings"]
    assert [name for one in found if one["code"] == "FewerGpus" for name in one["nodes"]] == short


def test_map_and_top_have_the_same_totals() -> None:
    usage = data("top", "--cluster", FLEET)["total"]["gpus"]
    assert data("map", FLEET)["gpus"] == usage
    told = f"{usage['used']}/{usage['total']}"
    assert f"{told} GPUs used on 100 nodes" in " ".join(call("map", FLEET).stdout.split())
    assert re.search(rf"^total +{told} ", call("top", "--cluster", FLEET).stdout, re.MULTILINE)


def test_plan_check_and_fit_say_which_part_of_the_cluster_a_pool_is(tmp_path: Path) -> None:
    config = written(tmp_path, POOLS, "coterie.yaml")
    said = "pool halls, 74 of 100 nodes"
    plan = call("plan", flow(tmp_path, "gpu: 4"), "--config", config, "--pool", "halls")
    assert said in plan.stdout.splitlines()[0]
    assert said in call("check", "--config", config, "--pool", "halls").stdout.splitlines()[0]
    fit = call("fit", "--gpus", "4", "--level", "rack", "--config", config, "--pool", "halls")
    assert said in fit.stdout.splitlines()[0]
    numbers = json.loads(
        call("plan", flow(tmp_path, "gpu: 4"), "--config", config, "--pool", "halls", "-o", "json").stdout
    )["stats"]
    assert (numbers["nodes"], numbers["pool_nodes"]) == (100, 74)


def test_nodes_outside_the_pool_are_said_to_be(tmp_path: Path) -> None:
    config = written(tmp_path, POOLS, "coterie.yaml")
    done = call("plan", flow(tmp_path, "gpu: 8"), "--config", config, "--pool", "halls")
    assert "26 nodes are not in the pool" in done.stdout


def test_fit_says_why_nothing_fits() -> None:
    done = call("fit", "--gpus", "8", "--level", "rack", FLEET)
    why = f"82 nodes have 3 to 4 GPUs, 8 asked; {NO_GPU}; {DEDICATED}"
    assert f"Such a task fits no rack, not even an empty one: {why}." in " ".join(done.stdout.split())
    found = data("fit", "--gpus", "8", "--level", "rack", FLEET)
    assert [(one["cause"], one["nodes"]) for one in found["causes"]] == [
        ("TooSmall", 82),
        ("NoResource", 10),
        ("Tainted", 8),
    ]


def test_of_mixed_tasks_those_that_fit_nowhere_do_not_hide_the_others(tmp_path: Path) -> None:
    text = """\
workflow:
  name: w
  groups:
  - name: g
    tasks:
    - {name: a, lead: true, image: i, command: [x], resource: cpu}
    - {name: b, image: i, command: [y], resource: gpu}
  resources:
    cpu: {cpu: 100}
    gpu: {gpu: 4}
"""
    done = call("plan", written(tmp_path, text, "w.yaml"), "--cluster", FLEET)
    assert "the empty cluster holds only 1 of 2 tasks" in done.stdout
    assert "because  for a: 82 nodes have the taint nvidia.com/gpu, not tolerated" in done.stdout
    assert "7 nodes have 64 CPU, 100 asked" in done.stdout
