"""`coterie top --cluster`: the usage of the nodes in a file, without a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.command import loaded
from tests.cli.command_lines import CONFIG, REFUSALS, UGLY, call, data, written


def test_every_domain_has_a_row_and_there_is_a_sum() -> None:
    done = call("top", "--cluster", REFUSALS)

    assert done.exit_code == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()[:8]] == [
        ["POOL/DOMAIN", "USED/TOTAL"],
        ["default", "28/96"],
        ["a", "24/64"],
        ["a1", "8/32"],
        ["a2", "16/32"],
        ["b!", "4/32"],
        ["b1!", "4/32"],
        ["total", "28/96"],
    ]
    assert "wf-13            16" in done.stdout


def test_the_data_says_what_the_map_of_the_same_nodes_says() -> None:
    found, drawn = data("top", "-c", REFUSALS), data("map", REFUSALS)

    assert found["total"]["gpus"] == found["pools"][0]["gpus"] == drawn["gpus"]
    assert found["holders"] == [{**one, "pools": ["default"]} for one in drawn["holders"]]
    zones = [one["gpus"] for one in found["pools"][0]["domains"] if one["level"] == "zone"]
    assert zones == [domain["gpus"] for domain in drawn["domains"]]
    assert yaml.safe_load(call("top", "-c", REFUSALS, "-o", "yaml").stdout) == found


def test_one_level_alone_and_names() -> None:
    done = call("top", "-c", REFUSALS, "--level", "rack", "-o", "name")

    assert done.stdout.split() == ["default", "default/a/a1", "default/a/a2", "default/b/b1"]
    assert [one["path"] for one in data("top", "-c", REFUSALS, "-l", "zone")["pools"][0]["domains"]] == [["a"], ["b"]]


def test_the_nodes_are_those_of_the_pool_that_is_named() -> None:
    found = data("top", "-c", REFUSALS, "--config", CONFIG, "--pool", "shared")

    assert found["pools"][0]["name"] == "shared"


def test_standard_input_is_read_and_names_in_it_cannot_drive_the_terminal() -> None:
    done = call("top", "-c", "-", stdin=UGLY)

    assert done.exit_code == 0
    assert all(char.isprintable() or char == "\n" for char in done.stdout)
    assert "(no rack)" in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--level", "rak"], 2, 'Did you mean "rack"?'),
        (["--watch"], 2, "--watch needs a service"),
        (["--pool", "none"], 2, "--pool"),
        (["--levels", "rack"], 3, "rack"),
    ],
)
def test_what_makes_no_sense_is_said(options: list[str], code: int, words: str) -> None:
    done = call("top", "-c", REFUSALS, *options)

    assert done.exit_code == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_levels_of_a_call_need_a_cluster(tmp_path: Path) -> None:
    done = call("top", "--levels", "rack=x/rack", "--server", "http://127.0.0.1:1")

    assert (done.exit_code, "need --cluster" in done.stderr) == (2, True)
    assert call("top", "-c", str(tmp_path / "none.yaml")).exit_code == 4


def test_a_cluster_without_nodes_or_levels_has_a_sum_of_nothing(tmp_path: Path) -> None:
    bare = written(tmp_path, "nodes:\n- {name: n1, gpu: 8, cpu: 8}\n")
    found = json.loads(call("top", "-c", bare, "-o", "json").stdout)

    assert found["pools"][0]["domains"] == []
    assert found["total"]["nodes"] == {"allocated": 0, "idle": 1, "other": 0, "total": 1}


def test_asking_a_service_loads_no_arrays() -> None:
    codes, found = loaded(["top", "--server", "http://127.0.0.1:1"])

    assert codes == [75]
    assert set(found) <= {"pydantic"}  # by which Typer itself reads options
