"""Answers about a fleet with GPUs of two vendors, partitions of GPUs, and the usual defects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_lines import call, data, written
from tests.fleets import mixed


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    return written(tmp_path, mixed.text(), "snapshot.json")


def pods(folder: Path, number: int, **limits: int) -> str:
    """Write a PodCliqueSet of equal pods."""
    container = {"name": "main", "image": "example.com/main:1.0.0", "resources": {"limits": limits}}
    clique = {"roleName": "w", "replicas": number, "podSpec": {"containers": [container]}}
    one: dict[str, Any] = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "set", "labels": {"kai.scheduler/queue": "q"}},
        "spec": {"replicas": 1, "template": {"cliques": [{"name": "w", "spec": clique}]}},
    }
    return written(folder, yaml.safe_dump(one), "set.yaml")


def test_check_counts_gpus_of_every_vendor_and_partitions(fleet: str) -> None:
    assert call("check", fleet).stdout.splitlines()[0] == "pool default, 17 nodes: 16 with GPUs, 1 without"


def test_a_node_whose_gpus_are_partitioned_is_not_short_of_gpus(fleet: str) -> None:
    found = [one["nodes"] for one in data("check", fleet)["findings"] if one["code"] == "FewerGpus"]
    assert found == [["h-2"]]


def test_map_and_top_count_gpus_of_every_vendor(fleet: str) -> None:
    counted = data("map", fleet)["gpus"]
    assert (counted["used"], counted["total"]) == (16, 8 * 8 - 1 + 4 * 8 + 2 * 8)
    assert data("top", "--cluster", fleet)["total"]["gpus"] == counted
    assert "infer/mi" in call("map", fleet, "--workload", "mi").stdout


def test_tasks_that_ask_for_gpus_of_another_vendor_are_said_to(fleet: str, tmp_path: Path) -> None:
    done = call("plan", pods(tmp_path, 2, **{mixed.AMD: 8}), "--cluster", fleet)
    assert done.exit_code == 0
    assert "8 amd.com/gpu" in done.stdout


def test_who_holds_the_gpus_of_another_vendor_is_told_with_the_way_out(fleet: str, tmp_path: Path) -> None:
    told = call("plan", pods(tmp_path, 3, **{mixed.AMD: 8}), "--cluster", fleet).stdout
    assert "held by  infer/mi 16 GPUs" in told
    assert "--without infer/mi" in told


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        (mixed.AMD, "10 nodes have other GPUs (nvidia.com/gpu)"),
        (mixed.AMD, "2 nodes have other GPUs (nvidia.com/mig-1g.10gb)"),
        (mixed.AMD, "cpu-0 has no GPU"),
        (mixed.AMD, "4 nodes have 8 amd.com/gpu, 16 asked"),
        (mixed.NVIDIA, "4 nodes have other GPUs (amd.com/gpu)"),
        (mixed.NVIDIA, "2 nodes have other GPUs (nvidia.com/mig-1g.10gb)"),
        (mixed.NVIDIA, "cpu-0 has no GPU"),
        (mixed.PARTITION, "4 nodes have other GPUs (amd.com/gpu)"),
    ],
)
def test_a_node_with_other_gpus_is_not_said_to_have_none(fleet: str, tmp_path: Path, resource: str, why: str) -> None:
    told = call("plan", pods(tmp_path, 1, **{resource: 16}), "--cluster", fleet).stdout
    assert why in told


def test_of_tasks_for_several_kinds_of_gpus_all_that_fit_are_counted(fleet: str, tmp_path: Path) -> None:
    text = Path(pods(tmp_path, 20, **{mixed.AMD: 8})).read_text(encoding="utf-8")
    one = yaml.safe_load(text)
    [amd] = one["spec"]["template"]["cliques"]
    nvidia = yaml.safe_load(yaml.safe_dump(amd).replace(mixed.AMD, mixed.NVIDIA).replace(": w", ": v"))
    one["spec"]["template"]["cliques"].append(nvidia)
    told = call("plan", written(tmp_path, yaml.safe_dump(one), "both.yaml"), "--cluster", fleet).stdout
    assert "the empty cluster holds only 11 of 40 tasks" in told


def test_partitions_may_be_used_if_the_taint_of_whole_gpus_is_tolerated(fleet: str, tmp_path: Path) -> None:
    told = call("plan", pods(tmp_path, 2, **{mixed.PARTITION: 7}), "--cluster", fleet)
    assert "2 nodes have the taint nvidia.com/gpu, not tolerated" in told.stdout
    assert "--tolerate nvidia.com/gpu" in told.stdout


def test_alternatives_name_the_taint_of_a_domain_that_takes_no_task(fleet: str, tmp_path: Path) -> None:
    text = """\
workflow:
  name: w
  groups:
  - name: g
    tasks:
    - {name: a, lead: true, image: i, command: [x], resource: r}
    - {name: b, image: i, command: [x], resource: r}
    - {name: c, image: i, command: [x], resource: r}
  resources:
    r: {gpu: 8, topology: [{key: zone}]}
"""
    file = written(tmp_path, text, "w.yaml")
    asked = ("--cluster", fleet, "--levels", mixed.LEVELS, "--alternatives", "-o", "json")
    [group] = json.loads(call("plan", file, *asked).stdout)["groups"]
    [survey] = group["alternatives"]
    told = {each["domain"][0]: (each["fits"], each["free_gpus"], each["lacks"]) for each in survey["domains"]}
    assert told == {"a": (3, 55, None), "b": (0, 0, "other GPUs"), "c": (0, 16, "taint sku")}


def test_the_limit_of_a_pool_counts_gpus_of_every_vendor(fleet: str, tmp_path: Path) -> None:
    pools = {
        "backends": {"lab": {"scheduler": "local", "cluster": fleet}},
        "pools": {"p": {"backend": "lab", "gpus": {"limit": 8}}},
    }
    asked = ("--config", written(tmp_path, yaml.safe_dump(pools), "coterie.yaml"), "--pool", "p")
    done = call("plan", pods(tmp_path, 2, **{mixed.AMD: 8}), *asked)
    assert "OverQuota" in done.stdout, done.stdout + done.stderr
    assert "it asks for 16 GPUs, but the pool's limit is 8" in done.stdout


def test_levels_are_guessed_from_the_network_labels_of_a_cloud(tmp_path: Path) -> None:
    layers = {f"topology.k8s.aws/network-node-layer-{number}": f"nn-{number}" for number in (1, 2, 3)}
    node = next(mixed.nodes())
    node["metadata"]["labels"] |= layers
    file = written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}), "aws.json")
    levels = [each["name"] for each in data("map", file, "--level", "host")["levels"]]
    assert levels == ["zone", "network-1", "network-2", "network-3", "host"]


def test_simulate_says_that_nodes_with_other_gpus_are_left_out(fleet: str, tmp_path: Path) -> None:
    trace = written(tmp_path, "job,gpus,submit,duration\na,8,0,60\n", "trace.csv")
    done = call("simulate", trace, "--cluster", fleet, "--levels", mixed.LEVELS)
    assert "9 nodes with GPUs are left out: 6 with other GPUs, 2 with the taint sku, 1 not ready" in done.stderr


def test_fit_names_no_taint_that_only_says_that_a_node_is_not_ready(fleet: str) -> None:
    done = call("fit", "--gpus", "8", "--level", "zone", fleet)
    [told] = [line for line in done.stderr.splitlines() if "TaintNotTolerated" in line]
    assert "2 nodes left out because of taints (sku): spare-[0-1]" in told
    assert "1 node out of service, so nothing fits there now: h-3 not ready" in done.stderr
