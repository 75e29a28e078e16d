"""Names that are UUIDs, as of NVL72 cliques, are shown by their distinct parts; data has them in full."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from coterie.topology.abbreviations import NOTE, abbreviated
from tests.cli.command_lines import ROOT, TRAINING, call, data, written
from tests.fleets.gb200 import LEVELS, RACKS

FLEET = str(ROOT / "examples/13-gb200-fleet/snapshot.json")
CLIQUES = sorted({rack.clique(number) for rack in RACKS for number in range(1, rack.nodes + 1)})
FORMS = [f"…{clique[-6:]}" for clique in CLIQUES]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NODES = ("--level", "gpu-clique", "--gpus", "4")

A, B = "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0", "b81d44f0-0c3a-4e8e-8f6b-6a7c2d901f3e.0"
# A zone with two cliques, and names of nodes that are as long; one of them is cordoned.
LONG = f"""\
topology_keys:
- {{key: zone, label: topology.kubernetes.io/zone}}
- {{key: rack, label: topology.kubernetes.io/rack}}
nodes:
- {{name: gb200-prod-rack-01-node-1.fleet.example, domains: {{zone: a, rack: {A}}}, gpu: 8, cpu: 96}}
- {{name: gb200-prod-rack-01-node-2.fleet.example, domains: {{zone: a, rack: {A}}}, gpu: 8, cpu: 96}}
- {{name: gb200-prod-rack-02-node-3.fleet.example, domains: {{zone: a, rack: {B}}}, gpu: 8, cpu: 96}}
- {{name: gb200-prod-rack-02-node-4.fleet.example, domains: {{zone: a, rack: {B}}}, gpu: 8, cpu: 96, cordoned: true}}
"""
HELD = "pods:\n- {owner: wf-12, node: gb200-prod-rack-01-node-1.fleet.example, gpu: 8}\n"
PAIR = """\
workflow:
  name: pair
  groups:
  - name: pair
    tasks:
    - {name: one, image: x, command: [x], resource: whole, lead: true}
    - {name: two, image: x, command: [x], resource: whole}
  resources:
    whole: {gpu: 8, topology: [{key: rack}]}
"""


def plan(folder: Path, cluster: str) -> list[str]:
    """Return the call that plans two tasks in one rack."""
    return ["plan", written(folder, PAIR, "pair.yaml"), "--cluster", written(folder, cluster)]


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize(
    "command", [("map", FLEET), ("top", "--cluster", FLEET), ("fit", FLEET, *NODES)], ids=["map", "top", "fit"]
)
def test_each_clique_is_shown_by_its_form_at_every_width(command: tuple[str, ...], width: int) -> None:
    shown = call(*command, "--levels", LEVELS, columns=width).stdout

    assert [form for form in FORMS if form not in shown] == []
    assert not UUID.search(shown)
    assert shown.replace("\n", " ").count(NOTE) == 1


@pytest.mark.parametrize(
    "command", [("map", FLEET), ("top", "--cluster", FLEET), ("fit", FLEET, *NODES)], ids=["map", "top", "fit"]
)
def test_wide_output_shows_names_in_full(command: tuple[str, ...]) -> None:
    shown = call(*command, "--levels", LEVELS, "-o", "wide").stdout

    assert [clique for clique in CLIQUES if clique not in shown] == []
    assert NOTE not in shown


def test_data_has_names_in_full() -> None:
    for command in (("map", FLEET), ("top", "--cluster", FLEET), ("fit", FLEET, *NODES)):
        text = json.dumps(data(*command, "--levels", LEVELS))

        assert [clique for clique in CLIQUES if clique not in text] == []


def test_short_names_are_left_as_they_are() -> None:
    assert NOTE not in call("map", TRAINING).stdout


def test_a_plan_shows_domains_and_nodes_by_their_forms(tmp_path: Path) -> None:
    shown = call(*plan(tmp_path, LONG), "--alternatives").stdout

    assert "rack  a/…5c6d.0  …node-[1-2]…" in shown
    assert "✔  a/…5c6d.0" in shown
    assert not UUID.search(shown)
    assert shown.endswith(f"\n\n{NOTE}\n")


def test_a_refusal_shows_forms_and_its_options_have_names_in_full(tmp_path: Path) -> None:
    call_of_plan = plan(tmp_path, LONG + HELD)
    shown = call(*call_of_plan).stdout

    assert "the best, a/…5c6d.0, fits 1" in shown
    assert "best     a/…5c6d.0 fits 1 of 2, a/…1f3e.0 fits 1 of 2" in shown
    assert "held by  wf-12 8 GPUs in a/…5c6d.0" in shown
    assert "--uncordon gb200-prod-rack-02-node-4.fleet.example" in shown
    assert f"the best, a/{A}, fits 1" in data(*call_of_plan)["groups"][0]["refusal"]["message"]


def test_a_form_of_a_node_can_be_given_back(tmp_path: Path) -> None:
    form = abbreviated(re.findall(r"name: (\S+),", LONG))["gb200-prod-rack-02-node-4.fleet.example"]

    assert call(*plan(tmp_path, LONG + HELD)).exit_code == 6
    for given in (form, form.replace("…", "...")):
        assert call(*plan(tmp_path, LONG + HELD), "--uncordon", given).exit_code == 0


def test_findings_of_a_check_show_forms(tmp_path: Path) -> None:
    file = written(tmp_path, LONG.replace("zone: a", "zone: b", 1))

    assert 'rack "…5c6d.0" lies in zone "a" (' in call("check", file).stdout
    assert f'rack "{A}" lies in zone "a" (' in call("check", file, "-o", "wide").stdout.replace("\n  ", " ")


def test_an_audit_shows_forms() -> None:
    text = (ROOT / "examples/audit/snapshot.json").read_text(encoding="utf-8")
    racks = {value for node in json.loads(text)["items"] for value in _racks(node)}
    for number, rack in enumerate(sorted(racks)):
        text = text.replace(f'"{rack}"', f'"3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a{number:04x}.0"')
    shown = call("audit", "-", stdin=text).stdout

    assert "…0000.0" in shown
    assert not UUID.search(shown)
    assert shown.count(NOTE) == 1
    assert UUID.search(call("audit", "-", "-o", "wide", stdin=text).stdout)


def _racks(item: dict[str, Any]) -> list[str]:
    labels = item["metadata"].get("labels", {})
    return [value for key, value in labels.items() if item["kind"] == "Node" and key.endswith("rack")]


def test_no_two_cards_of_the_picture_have_the_same_title() -> None:
    root = ET.fromstring(call("map", FLEET, "--levels", LEVELS, "-o", "svg").stdout)  # noqa: S314 - our own output
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    titles = [text for text in texts if text.endswith(tuple(FORMS))]

    assert sorted(title[-7:] for title in titles) == sorted(FORMS)
    assert any("r02/…6d40.1" in title for title in titles)
    assert any("long names are shortened" in text for text in texts)
