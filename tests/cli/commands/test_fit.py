"""`coterie fit`: the largest gang per domain, and the obstacles to larger ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.command_lines import CONFIG, REFUSALS, TRAINING, call, data, written

TAINTED = """\
topology_keys: [{key: rack, label: topology.kubernetes.io/rack}]
nodes:
- {name: n1, gpu: 8, cpu: 8, domains: {rack: r1}}
- {name: n2, gpu: 8, cpu: 8, domains: {rack: r1}, taints: [{key: dedicated}]}
- {name: n3, gpu: 8, cpu: 8}
"""


def test_domains_come_best_first_with_a_sum() -> None:
    done = call("fit", "--gpus", "8", "--level", "rack", REFUSALS)

    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()[1:6]] == [
        ["RACK", "FITS", "NOW", "IF", "EMPTY"],
        ["a/a1", "3", "4"],
        ["a/a2", "2", "4"],
        ["b/b1", "2", "4"],
        ["in", "all", "7", "12"],
    ]
    assert "has 3 tasks now, in a/a1; on the empty cluster, 4." in done.stdout


def test_gangs_are_counted_per_domain_and_never_across() -> None:
    found = data("fit", "--gpus", "8", "--level", "rack", "--tasks", "3", REFUSALS)

    assert [room["gangs_now"] for room in found["domains"]] == [1, 0, 0]
    assert (found["total"]["gangs_now"], found["total"]["gangs_empty"]) == (1, 3)
    assert found["total"]["now"] == 7


def test_cpu_and_memory_bind_as_gpus_do() -> None:
    by_gpu = data("fit", "--gpus", "1", "--level", "zone", REFUSALS)
    by_cpu = data("fit", "--gpus", "1", "--cpu", "48", "--level", "zone", REFUSALS)
    by_memory = data("fit", "--gpus", "1", "--memory", "1Ti", "--level", "zone", REFUSALS)

    assert by_cpu["task"] == {"cpu": 48000, "nvidia.com/gpu": 1}
    assert by_memory["task"]["memory"] == 1 << 40
    assert by_gpu["total"]["empty"] > by_cpu["total"]["empty"] == 24
    assert by_memory["total"]["empty"] == 12


def test_a_task_without_gpus_is_counted_too() -> None:
    assert data("fit", "--cpu", "96", "--level", "zone", REFUSALS)["total"]["empty"] == 12


def test_what_fits_nowhere_and_what_fits_not_now_is_said(tmp_path: Path) -> None:
    full = written(tmp_path, TAINTED + "pods: [{owner: a, nodes: [n1, n2], gpu: 8}]\n")

    assert "fits no rack, not even an empty one" in call("fit", "--gpus", "9", "--level", "rack", REFUSALS).stdout
    done = call("fit", "--gpus", "8", "--level", "rack", full)
    told = " ".join(done.stdout.split())
    assert "No such task fits now: " in told
    assert "n1 has no GPU free, 8 asked" in told
    assert "On the empty cluster the largest gang in one rack has 1 task." in told


def test_taints_and_room_outside_the_level_are_warned_about(tmp_path: Path) -> None:
    done = call("fit", "--gpus", "8", "--level", "rack", written(tmp_path, TAINTED))

    assert "warning[TaintNotTolerated]: 1 node left out because of taints (dedicated): n2." in done.stderr
    assert "warning[OutsideLevel]: 1 more task would fit on 1 node in no rack" in done.stderr


def test_a_pool_brings_its_tolerations_limit_and_scheduler(tmp_path: Path) -> None:
    written(tmp_path, TAINTED)
    config = """\
backends:
  lab: {scheduler: kai, cluster: cluster.yaml}
pools:
  p:
    topology_keys: [{key: zone, label: kind}, {key: rack, label: topology.kubernetes.io/rack}]
    tolerations: [{key: dedicated, operator: Exists}]
    gpus: {limit: 8}
"""
    file = written(tmp_path, config, "coterie.yaml")
    levels = "rack=topology.kubernetes.io/rack"

    found = data("fit", "--gpus", "8", "--level", "rack", "--config", file, "--levels", levels)

    assert found["total"]["now"] == 2
    assert [notice["code"] for notice in found["warnings"]] == ["OverQuota"]
    assert found["outside"]["now"] == 0


def test_the_cluster_of_the_backend_is_used_where_none_is_named() -> None:
    found = data("fit", "--gpus", "4", "--level", "gpu-clique", "--config", CONFIG, "--pool", "gb200")

    assert found["domains"][0]["domain"] == ["z1", "rack1"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--gpus", "8"), 2, "Add --level with one of: zone, rack, gpu-clique."),
        (("--gpus", "8", "--level", "rakc"), 2, 'Did you mean "rack"?'),
        (("--gpus", "8", "--level", "gpu-clique"), 4, "Levels that nodes are in: zone, rack."),
        (("--level", "rack"), 2, "Add --gpus, --cpu or --memory."),
        (("--gpus", "0", "--level", "rack"), 2, "Add --gpus, --cpu or --memory."),
        (("--gpus", "-1", "--level", "rack"), 2, "--gpus"),
        (("--gpus", "x", "--level", "rack"), 2, "--gpus"),
        (("--gpus", "8", "--tasks", "0", "--level", "rack"), 2, "--tasks"),
        (("--gpus", "8", "--memory", "lots", "--level", "rack"), 2, '--memory: "lots" is not a quantity'),
        (("--gpus", "8", "--cpu", "-1", "--level", "rack"), 2, "negative"),
        (("--gpus", "8", "--cpu", "9" * 40, "--level", "rack"), 2, "more than Coterie can count"),
        (("--gpus", str(10**30), "--level", "rack"), 2, "--gpus"),
    ],
)
def test_questions_that_make_no_sense_are_refused_with_what_does(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = call("fit", *arguments, REFUSALS)

    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_cluster_without_nodes_or_levels_is_refused(tmp_path: Path) -> None:
    assert call("fit", "--gpus", "8", "--level", "rack", written(tmp_path, "nodes: []")).exit_code == 3
    bare = call("fit", "--gpus", "8", "--level", "rack", written(tmp_path, "nodes: [{name: n1, gpu: 8}]"))
    assert bare.exit_code == 2
    assert "give some with --levels" in bare.stderr
    unnamed = call("fit", "--gpus", "8", written(tmp_path, "nodes: [{name: n1, gpu: 8}]"))
    assert unnamed.exit_code == 2
    assert "with one of: ." not in unnamed.stderr


def test_many_domains_are_cut_off_in_the_table_and_whole_in_the_others(tmp_path: Path) -> None:
    text = "topology_keys: [{key: rack, label: r}]\nfleet: [{domains: {rack: 100}, nodes: 2, gpu: 8}]\n"
    cluster = written(tmp_path, text)
    question = ("fit", "--gpus", "8", "--level", "rack", cluster)

    assert "60 others" in call(*question).stdout
    assert "60 others" not in call(*question, "-o", "wide").stdout
    assert len(data(*question)["domains"]) == 100


def test_every_format_has_the_answer() -> None:
    question = ("fit", "--gpus", "4", "--level", "gpu-clique", "--tasks", "8", TRAINING)

    assert yaml.safe_load(call(*question, "-o", "yaml").stdout) == data(*question)
    assert call(*question, "-o", "name").stdout.splitlines()[0] == "z1/rack1"
    assert "FREE GPUS" in call(*question, "-o", "wide").stdout


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
def test_names_with_escape_sequences_never_reach_the_output(tmp_path: Path, output: str) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "n\x1b1", "labels": {"rack": "r\x9b\x1b1"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "9"}},
    }
    file = written(tmp_path, json.dumps({"kind": "List", "apiVersion": "v1", "items": [node]}), "snapshot.json")

    done = call("fit", "--gpus", "1", "--level", "rack", "--levels", "rack=rack", file, "-o", output)

    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\x9b" not in done.output
