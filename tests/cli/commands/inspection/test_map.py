"""`coterie map`: its content, in every format and on every kind of output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from coterie.inspection.page_files import PageFiles
from tests.cli.command_lines import CONFIG, REFUSALS, TRAINING, UGLY, call, data, written


def nodes(area: dict[str, Any]) -> list[dict[str, Any]]:
    return [*area["nodes"], *(node for below in area["domains"] for node in nodes(below))]


def test_the_map_shows_domains_nodes_states_and_holders() -> None:
    done = call("map", REFUSALS)

    assert done.exit_code == 0
    assert done.stderr == ""
    assert "b  rack b1  ░░░░░░░░ ░░░░░░░░ ████░░░░ ░░░░░░░░!   4/32  1 cordoned, wf-14" in done.stdout


def test_the_finest_level_that_nodes_are_in_is_shown_unless_another_is_named() -> None:
    assert "rack a1" in call("map", REFUSALS).stdout
    assert "zone a" in call("map", REFUSALS, "--level", "zone").stdout


def test_json_is_a_tree_whose_sums_add_up() -> None:
    found = data("map", TRAINING)

    assert [level["name"] for level in found["levels"]] == ["zone", "gpu-clique"]
    assert found["gpus"] == {"used": 55, "free": 373, "out_of_service": 4, "total": 432}
    assert found["holders"][0] == {"owner": "rl-5", "gpus": 32}
    for area in (found, *found["domains"], *found["domains"][0]["domains"]):
        inside = nodes(area)
        assert area["node_count"] == len(inside)
        for key in ("used", "free", "out_of_service", "total"):
            assert area["gpus"][key] == sum(node["gpus"][key] for node in inside)
    assert found["domains"][0]["domains"][4]["path"] == ["z1", "rack5"]
    assert yaml.safe_load(call("map", TRAINING, "-o", "yaml").stdout) == found


def test_json_has_nodes_without_a_label_where_their_labels_end(tmp_path: Path) -> None:
    found = data("map", written(tmp_path, UGLY))

    assert [node["name"] for node in found["nodes"]] == ["n2"]
    assert [node["name"] for node in found["domains"][0]["nodes"]] == ["n1"]


def test_names_are_the_domains() -> None:
    assert call("map", REFUSALS, "-o", "name").stdout == "a/a1\na/a2\nb/b1\n"


def test_svg_is_one_picture() -> None:
    done = call("map", TRAINING, "-o", "svg")

    assert ET.fromstring(done.stdout).tag.endswith("svg")  # noqa: S314 - our own output


def test_a_workload_is_found_by_its_name_or_what_follows_the_namespace(tmp_path: Path) -> None:
    held = [("n2", "ml/train"), ("n2", "ml/eval"), ("n1", "x/eval")]
    text = UGLY + "".join(f"- {{node: {node}, gpu: 1, owner: {owner}}}\n" for node, owner in held)
    cluster = written(tmp_path, text)

    assert "█ ml/train" in call("map", cluster, "--workload", "train").stdout
    assert "█ ml/eval" in call("map", cluster, "--workload", "ml/eval").stdout
    several = call("map", cluster, "--workload", "eval")
    assert several.exit_code == 2
    assert "ml/eval, x/eval" in several.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--level", "rakc"), 2, 'Did you mean "rack"? Levels are: zone, rack, gpu-clique.'),
        (("--level", "gpu-clique"), 4, "Levels that nodes are in: zone, rack."),
        (("--workload", "wf-15"), 4, "Holders are: wf-12, wf-13, wf-14."),
        (("--workload", "\x1b[31m"), 4, "\\x1b[31m"),
        (("--output", "png"), 2, "svg"),
    ],
)
def test_what_does_not_exist_is_said_with_what_does(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = call("map", REFUSALS, *arguments)

    assert done.exit_code == code
    assert said in done.stderr
    assert "\x1b" not in done.output


def test_nobody_holds_anything_in_an_empty_cluster(tmp_path: Path) -> None:
    done = call("map", written(tmp_path, "nodes: [{name: n1, gpu: 8}]"), "--workload", "a")

    assert done.exit_code == 4
    assert "No GPU is in use." in done.stderr


def test_without_levels_all_nodes_are_in_one_row(tmp_path: Path) -> None:
    assert call("map", written(tmp_path, "nodes: [{name: n1, gpu: 8}]")).stdout.startswith("all nodes  ░░░░░░░░  0/8\n")


def test_guessed_levels_are_used_and_said(tmp_path: Path) -> None:
    rack = "topology.kubernetes.io/rack"
    done = call("map", written(tmp_path, f"nodes: [{{name: n1, gpu: 8, labels: {{{rack}: r1}}}}]"))

    assert done.stdout.startswith("rack r1  ")
    assert f"--levels rack={rack},host=kubernetes.io/hostname" in done.stderr


def test_a_pool_shows_its_own_nodes() -> None:
    assert data("map", "--config", CONFIG, "--pool", "gb200")["node_count"] == 108


def test_held_gpus_that_a_node_does_not_have_are_shown_as_used_but_not_as_its_own(tmp_path: Path) -> None:
    found = data("map", written(tmp_path, "nodes: [{name: n1, gpu: 4}]\npods: [{node: n1, gpu: 6, owner: a}]"))

    assert found["gpus"] == {"used": 6, "free": 0, "out_of_service": 0, "total": 4}


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "svg", "name"])
def test_names_with_escape_sequences_never_reach_the_output(tmp_path: Path, output: str) -> None:
    done = call("map", written(tmp_path, UGLY), "-o", output)

    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\x9b" not in done.output
    assert "<script>" not in done.output or output in {"table", "wide", "json", "yaml"}


def run(*arguments: str, stdout: int | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "coterie", *arguments],
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "COTERIE_CONFIG": "", **environment},
        check=False,
    )


@pytest.mark.slow("starts a process for each case")
@pytest.mark.parametrize("output", ["table", "json", "svg"])
def test_a_full_disk_is_one_line_and_exit_1(output: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run("map", REFUSALS, "-o", output, stdout=full.fileno())

    assert done.returncode == 1
    hint = b"hint: Check that it exists, that you may use it, and that its disk has room.\n"
    assert done.stderr == b"error: output: No space left on device\n" + hint


@pytest.mark.slow("starts a process for each case")
def test_a_reader_that_has_gone_is_no_news() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run("map", REFUSALS, stdout=writing)
    finally:
        os.close(writing)

    assert done.returncode != 0
    assert done.stderr == b""


@pytest.mark.slow("starts a process for each case")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_without_block_characters_gets_others(tmp_path: Path, encoding: str) -> None:
    cluster = written(tmp_path, UGLY + '- {node: n2, gpu: 2, owner: "日本"}\n')

    done = run("map", cluster, PYTHONIOENCODING=encoding)

    assert done.returncode == 0
    assert b"##......" in done.stdout
    assert b"\\u65e5\\u672c" in done.stdout


@pytest.mark.parametrize("options", [("-o", "html"), ("--web",)])
def test_an_installation_without_the_page_says_what_to_do(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageFiles, "read", lambda: None)
    done = call("map", REFUSALS, *options)

    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: no web page: building it needs Node.js")
    assert "\nhint: Install Node.js" in done.stderr


def test_a_map_in_a_browser_has_no_other_format() -> None:
    done = call("map", REFUSALS, "--web", "-o", "json")

    assert done.exit_code == 2
    assert "-o html" in json.loads(done.stdout)["errors"][0]["hint"]
