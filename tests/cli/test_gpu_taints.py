"""Commands on a realistic GPU cluster: taints named after resources, other taints, and guessed levels."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import call, workflow
from tests.fleets import gb200

FLEET = gb200.text().encode()
CLIQUE = "{key: gpu-clique}"
STRICT = """\
backends: {lab: {scheduler: kai, cluster: fleet.json}}
pools:
  p: {resource_tolerations: false, topology_keys: [{key: gpu-clique, label: nvidia.com/gpu.clique}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fleet.json").write_bytes(FLEET)
    return tmp_path


def flow(folder: Path, tasks: int, topology: str = CLIQUE, gpus: int = 4, name: str = "wf") -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(workflow(tasks, name=name, topology=topology, gpus=gpus), encoding="utf-8")
    return file


def plan(*arguments: str | Path) -> Any:
    return json.loads(call("plan", *arguments, "-o", "json").out)


def tolerated(answer: Any) -> list[str]:
    """Return the taints that ways out of a refusal tolerate."""
    commands = [shlex.split(way["command"]) for way in answer["groups"][0]["refusal"]["ways_out"]]
    return [command[-1] for command in commands if command[-2] == "--tolerate"]


def test_the_first_command_of_the_readme_works_on_a_gpu_fleet_with_and_without_levels(folder: Path) -> None:
    file = flow(folder, 16)

    guessed = call("plan", file, "--cluster", "-", stdin=FLEET)
    given = call("plan", file, "--cluster", "-", "--levels", gb200.LEVELS, stdin=FLEET)

    assert (guessed.code, given.code) == (0, 0)
    assert guessed.out == given.out
    assert guessed.err.count("warning[LevelsGuessed]") == 1
    assert f"--levels {gb200.LEVELS}" in guessed.err
    assert "LevelsGuessed" not in given.err


def test_map_and_plan_guess_the_same_levels_with_the_same_words(folder: Path) -> None:
    told = [
        [line for line in call(*command, stdin=FLEET).err.splitlines() if "LevelsGuessed" in line]
        for command in (("map", "-"), ("plan", flow(folder, 2), "--cluster", "-"))
    ]

    assert told[0] == told[1] != []


def test_one_notice_says_that_a_toleration_was_assumed(folder: Path) -> None:
    done = call("plan", flow(folder, 2), flow(folder, 2, name="other"), "--cluster", "-", stdin=FLEET)

    assert done.err.count("warning[TolerationAssumed]") == 1
    assert "tasks that ask for nvidia.com/gpu are assumed to tolerate the taint of that name on 82 nodes" in done.err


def test_labels_are_checked_on_nodes_whatever_their_taints(folder: Path) -> None:
    """With taints that nobody tolerates, there were no labelled nodes left to look at."""
    (folder / "coterie.yaml").write_text(STRICT, encoding="utf-8")

    done = call("plan", flow(folder, 2), "--config", folder / "coterie.yaml")

    assert done.code == 7
    assert "LabelOnNoNode" not in done.err
    assert "missing on 1 of 90 nodes (r04-n03)" in done.err


def test_a_pool_without_resource_tolerations_keeps_to_what_it_lists(folder: Path) -> None:
    (folder / "coterie.yaml").write_text(STRICT, encoding="utf-8")

    refused = plan(flow(folder, 2), "--config", folder / "coterie.yaml")
    tolerant = plan(flow(folder, 2), "--config", folder / "coterie.yaml", "--tolerate", gb200.GPU)

    assert refused["verdict"] == "impossible"
    assert tolerated(refused) == [gb200.GPU]
    assert tolerant["verdict"] == "placed"


def test_a_refusal_offers_to_tolerate_another_taint_also_where_part_of_the_tasks_fit(folder: Path) -> None:
    """r06 is reserved: 10 nodes of its hall are free without it, and 15 with it."""
    file = flow(folder, 12, "{key: zone}")
    (folder / "hall.json").write_text(json.dumps(_only(lambda labels: labels[gb200.ZONE] == "hall-2")))

    refused = plan(file, "--cluster", folder / "hall.json")
    tolerant = plan(file, "--cluster", folder / "hall.json", "--tolerate", "dedicated")

    assert refused["groups"][0]["refusal"]["best"][0]["fits"] == 10
    assert tolerated(refused) == ["dedicated"]
    assert tolerant["verdict"] == "placed"


def test_a_taint_that_nobody_has_cannot_be_tolerated(folder: Path) -> None:
    done = call("plan", flow(folder, 2), "--cluster", folder / "fleet.json", "--tolerate", "dedicate")

    assert done.code == 4
    assert 'there is no taint "dedicate"' in done.err
    assert 'Did you mean "dedicated"?' in done.err


def test_fit_counts_nodes_with_the_taint_of_the_resource(folder: Path) -> None:
    done = call("fit", "--gpus", "4", "--level", "rack", folder / "fleet.json", "-o", "json")
    found = json.loads(done.out)

    assert found["total"]["empty"] == 81
    assert "TolerationAssumed" in {each["code"] for each in found["warnings"]}
    assert "8 nodes left out because of taints (dedicated): r06-n[01-08]" in done.err


def test_render_writes_the_toleration_and_guesses_levels(folder: Path) -> None:
    done = call("render", flow(folder, 2), "--cluster", folder / "fleet.json", "--backend", "kai")
    pods = [one for one in yaml.safe_load_all(done.out) if one["kind"] == "Pod"]

    assert done.err.count("warning[LevelsGuessed]") == 1
    assert [pod["spec"]["tolerations"] for pod in pods] == [
        [{"key": gb200.GPU, "operator": "Exists", "effect": "NoSchedule"}]
    ] * 2


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_a_podcliqueset_may_use_nodes_with_the_taint_of_its_resource(folder: Path, resource: str) -> None:
    """Its own tolerations are kept, and `kubernetes.io` has no extended resources."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": resource, "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110", resource: "8"}},
    }
    (folder / "one.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    container = {"name": "c", "image": "i", "resources": {"limits": {resource: "4"}}}
    clique = {"roleName": "w", "replicas": 2, "podSpec": {"containers": [container]}}
    pcs = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "set"},
        "spec": {"replicas": 1, "template": {"cliques": [{"name": "w", "spec": clique}]}},
    }
    (folder / "set.yaml").write_text(yaml.safe_dump(pcs), encoding="utf-8")

    found = plan(folder / "set.yaml", "--cluster", folder / "one.json")

    assert found["verdict"] == "placed"
    assert [each["code"] for each in found["warnings"] if each["code"] == "TolerationAssumed"] == ["TolerationAssumed"]


def _only(wanted: Any) -> Any:
    found = gb200.dump()
    nodes = [item for item in found["items"] if item["kind"] == "Node" and wanted(item["metadata"]["labels"])]
    names = {item["metadata"]["name"] for item in nodes}
    pods = [item for item in found["items"] if item["kind"] == "Pod" and item["spec"].get("nodeName") in names]
    return {**found, "items": [*nodes, *pods]}


def test_simulate_uses_tainted_gpu_nodes_and_says_what_it_left_out(folder: Path) -> None:
    (folder / "trace.csv").write_text("job,gpus,submit,duration\na,8,0,60\nb,400,5,60\n", encoding="utf-8")

    done = call("simulate", folder / "trace.csv", "--cluster", folder / "fleet.json", "-o", "json")
    found = json.loads(done.out)

    assert found["left_out"] == {
        "nodes": [
            {"reason": "with the taint dedicated", "nodes": 8},
            {"reason": "cordoned", "nodes": 2},
            {"reason": "in no gpu-clique", "nodes": 1},
            {"reason": "not ready", "nodes": 1},
        ],
        "jobs": 1,
    }
    assert "warning[NodesLeftOut]: 12 nodes with GPUs are left out: 8 with the taint dedicated, 2 cordoned" in done.err
    assert "warning[TolerationAssumed]" in done.err
    assert "warning[NeverFits]: jobs that can never fit are left out for all policies: 1 of 400 GPUs" in done.err


def test_a_set_is_written_for_grove_with_the_toleration_unless_the_pool_turns_it_off(folder: Path) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"amd.com/gpu": "4"}}}
    kept = {"key": "mine", "operator": "Exists"}
    clique = {"roleName": "w", "replicas": 2, "podSpec": {"containers": [container], "tolerations": [kept]}}
    pcs = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "set"},
        "spec": {"replicas": 1, "template": {"cliques": [{"name": "w", "spec": clique}]}},
    }
    (folder / "set.yaml").write_text(yaml.safe_dump(pcs), encoding="utf-8")
    (folder / "coterie.yaml").write_text(STRICT, encoding="utf-8")

    written = [
        yaml.safe_load(call("render", folder / "set.yaml", "--backend", "grove", *more).out)
        for more in ((), ("--config", folder / "coterie.yaml"))
    ]

    pods = [found["spec"]["template"]["cliques"][0]["spec"]["podSpec"] for found in written]
    assumed = {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert [pod["tolerations"] for pod in pods] == [[kept, assumed], [kept]]
