"""`--topology`, pools that name a ClusterTopology, and ClusterTopologies inside a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.frontends.grove.kai_topology import KAI_VERSION
from coterie.planning.inputs import read_snapshot
from coterie.topology.levels import Topology
from tests.cli.command import Done, call, workflow
from tests.frontends.grove.test_cluster_topology import CT, CTB, Pairs, made

ZONE, RACK = ("zone", "example.com/z"), ("rack", "example.com/r")
ROOMS = [("room", "example.com/z")]
TRACE = "job,submit,duration,gpus\na,0,10,8\n"


def named(name: str, levels: Pairs, kind: str = CT, bound: Pairs = ()) -> dict[str, Any]:
    return made(kind, levels, bound) | {"metadata": {"name": name}}


def kai(name: str, keys: list[str]) -> dict[str, Any]:
    levels = [{"nodeLabel": key} for key in keys]
    owner = {"kind": CT, "name": name, "controller": True}
    metadata = {"name": name, "ownerReferences": [owner]}
    return {"apiVersion": KAI_VERSION, "kind": "Topology", "metadata": metadata, "spec": {"levels": levels}}


def nodes() -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {ZONE[1]: "a", RACK[1]: f"r{number // 2}"}},
            "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1Ti", "pods": "110"}},
        }
        for number in range(4)
    ]


class TopologyFolder:
    """A folder with a snapshot, a workflow that asks for a rack, and files with topologies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.snapshot()
        self.write("wf.yaml", workflow(2))
        self.write("trace.csv", TRACE)
        self.write("one.yaml", json.dumps(named("one", [ZONE, RACK])))
        self.write("binding.yaml", json.dumps(named("b", [ZONE, RACK], CTB)))
        both = [named("one", [ZONE, RACK]), named("two", ROOMS)]
        self.write("two.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": both}))
        self.pool("keys", "topology_keys: [{key: hall, label: example.com/z}]")
        self.pool("named", "topology: one")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def snapshot(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": [*nodes(), *objects]}
        self.write("snapshot.json", json.dumps(listed))

    def pool(self, name: str, topology: str) -> None:
        pool = f"pools:\n  p: {{{topology}}}\n"
        self.write(f"{name}.config.yaml", f"backends:\n  b: {{scheduler: local, cluster: snapshot.json}}\n{pool}")

    def call(self, words: str, stdin: str = "") -> Done:
        return call(*words.split(), cwd=self.folder, stdin=stdin.encode())

    def levels(self, options: str) -> list[str]:
        done = self.call(f"check snapshot.json -o json {options}")
        assert done.code in {0, 6}, done.err
        return [level["name"] for level in json.loads(done.out)["levels"]]


@pytest.fixture
def desk(tmp_path: Path) -> TopologyFolder:
    return TopologyFolder(tmp_path)


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ("--topology one.yaml", ["zone", "rack"]),
        ("--topology binding.yaml", ["zone", "rack"]),
        ("--topology one.yaml#one", ["zone", "rack"]),
        ("--topology two.json#two", ["room"]),
        ("--config keys.config.yaml", ["hall"]),
        ("--config keys.config.yaml --topology one.yaml", ["zone", "rack"]),
        ("--config named.config.yaml --topology one.yaml", ["zone", "rack"]),
        ("--config named.config.yaml --topology two.json", ["zone", "rack"]),
        ("--config named.config.yaml --topology two.json#two", ["room"]),
        ("--config named.config.yaml --levels a=example.com/z", ["a"]),
    ],
)
def test_levels_come_from_the_file_that_is_named(desk: TopologyFolder, options: str, levels: list[str]) -> None:
    assert desk.levels(options) == levels


@pytest.mark.parametrize(
    "command",
    [
        "plan wf.yaml -c snapshot.json",
        "render wf.yaml",
        "map snapshot.json",
        "fit --gpus 8 --level rack snapshot.json",
        "simulate trace.csv -c snapshot.json --rule rack",
        "check snapshot.json",
    ],
)
def test_every_command_with_levels_takes_a_topology(desk: TopologyFolder, command: str) -> None:
    done = desk.call(f"{command} --topology one.yaml")
    assert done.code == 0, done.err
    both = desk.call(f"{command} --topology one.yaml --levels rack=x")
    assert both.code == 2
    assert "--levels and --topology both define the levels" in both.err


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("check snapshot.json --topology two.json", 2, ["has 2 topologies", "one, two", "--topology two.json#one"]),
        ("check snapshot.json --topology two.json#Two", 4, ['"Two"', "two.json", 'Did you mean "two"?', "one, two"]),
        ("check snapshot.json --topology none.yaml", 4, ["there is no file none.yaml"]),
        ("check snapshot.json --topology one.yaml#", 2, ["names no topology"]),
        ("check snapshot.json --topology #", 2, ["names no topology"]),
        ("check snapshot.json --topology #one", 4, ["None is known", "clustertopologies"]),
        ("check snapshot.json --topology wf.yaml", 3, ["apiVersion is missing"]),
        ("check - --topology -", 2, ["standard input can be read only once"]),
        ("plan - -c snapshot.json --topology -#one", 2, ["standard input can be read only once"]),
        ("check snapshot.json --config named.config.yaml", 4, ['"one"', 'pool "p" takes its levels from']),
        ("check --config named.config.yaml --topology binding.yaml", 4, ['"one"', "Known are: b."]),
        ("plan one.yaml -c snapshot.json", 2, ["nothing to plan"]),
    ],
)
def test_what_cannot_be_meant_is_said_in_words(desk: TopologyFolder, command: str, code: int, words: list[str]) -> None:
    done = desk.call(command)
    assert done.code == code, done.err
    assert all(word in done.err for word in words), done.err


def test_an_empty_topology_is_wrong_usage(desk: TopologyFolder) -> None:
    done = call("check", "snapshot.json", "--topology", "", cwd=desk.folder)
    assert (done.code, "--topology is empty" in done.err) == (2, True)


def test_a_file_name_may_hold_a_hash(desk: TopologyFolder) -> None:
    desk.write("a#b.yaml", json.dumps(named("one", ROOMS)))
    assert desk.levels("--topology a#b.yaml") == ["room"]


def test_what_kai_would_refuse_is_told_by_the_commands_that_use_it(desk: TopologyFolder) -> None:
    hosts = [("host", "kubernetes.io/hostname"), RACK]
    desk.write("odd.json", json.dumps({"kind": "List", "items": [named("odd", hosts, CTB), named("one", ROOMS)]}))
    for command in ("render wf.yaml", "map snapshot.json", "plan wf.yaml -c snapshot.json"):
        assert "warning[RefusedByKai]" in desk.call(f"{command} --topology odd.json#odd").err
    assert "RefusedByKai" not in desk.call("map snapshot.json --topology odd.json#one").err


def test_a_topology_may_come_from_standard_input(desk: TopologyFolder) -> None:
    done = desk.call("check snapshot.json --topology -#two -o json", (desk.folder / "two.json").read_text())
    assert [level["name"] for level in json.loads(done.out)["levels"]] == ["room"]


def test_faults_of_the_topology_and_of_the_workflow_are_told_together(desk: TopologyFolder) -> None:
    desk.write("bad.yaml", json.dumps(named("one", [RACK, RACK])))
    desk.write("wf.yaml", "workflow: {name: w, oops: 1}\n")
    done = desk.call("plan wf.yaml -c snapshot.json --topology bad.yaml -o json")
    found = {error["file"] for error in json.loads(done.out)["errors"]}
    assert (done.code, found) == (3, {"bad.yaml", "wf.yaml"})


def test_a_command_for_a_way_out_repeats_the_topology(desk: TopologyFolder) -> None:
    desk.write("wf.yaml", workflow(3))
    done = desk.call("plan wf.yaml -c snapshot.json --topology one.yaml -o json")
    assert done.code in {6, 7}
    assert "--topology one.yaml" in done.out


def test_a_topology_among_the_files_is_for_the_workflows_beside_it(desk: TopologyFolder) -> None:
    done = desk.call("plan one.yaml wf.yaml -c snapshot.json")
    assert done.code == 0, done.err
    assert 'the levels are those of the ClusterTopology "one"' in done.err
    assert desk.call("plan two.json wf.yaml -c snapshot.json --topology #one").code == 0
    assert desk.call("plan two.json wf.yaml -c snapshot.json --config named.config.yaml").code == 0


def test_a_single_topology_of_the_snapshot_is_taken_and_told(desk: TopologyFolder) -> None:
    desk.snapshot(named("one", [ZONE, RACK]))
    done = desk.call("check snapshot.json")
    assert 'warning[TopologyTaken]: the levels are those of the ClusterTopology "one"' in done.err
    assert desk.levels("") == ["zone", "rack"]
    for command in ("plan wf.yaml -c snapshot.json", "render wf.yaml -c snapshot.json"):
        done = desk.call(command)
        assert (done.code, "TopologyTaken" in done.err) == (0, True), done.err
    assert "TopologyTaken" not in desk.call("check snapshot.json --levels rack=example.com/r").err


def test_of_several_topologies_in_the_snapshot_one_is_chosen_by_name(desk: TopologyFolder) -> None:
    desk.snapshot(named("one", [ZONE, RACK], CTB), named("two", ROOMS))
    assert "TopologyNotChosen" in desk.call("map snapshot.json").err
    assert desk.levels("--topology #two") == ["room"]
    assert desk.levels("--config named.config.yaml") == ["zone", "rack"]
    assert desk.levels("--config named.config.yaml --topology #two") == ["room"]


def test_a_wrong_topology_in_the_snapshot_is_a_warning_until_it_is_used(desk: TopologyFolder) -> None:
    desk.snapshot(named("one", []))
    done = desk.call("map snapshot.json --levels rack=example.com/r")
    assert done.code == 0
    assert 'ClusterTopology "one" is invalid and cannot be used' in done.err
    done = desk.call("check --config named.config.yaml")
    assert done.code == 3
    assert 'ClusterTopology "one": a ClusterTopology needs at least one level' in done.err


def test_a_snapshot_keeps_its_topologies_by_name() -> None:
    items = [*nodes(), named("one", [ZONE]), named("b", [RACK], CTB), kai("one", [ZONE[1]]), {"kind": "Service"}]
    snapshot = read_snapshot(json.dumps({"kind": "List", "items": items}).encode(), "s.json")
    assert snapshot.topologies == {"one": Topology.of(ZONE), "b": Topology.of(RACK)}
    assert [found["kind"] for found in snapshot.objects] == [CT, CTB, "Topology"]
    assert len(snapshot.cluster) == 4


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([named("one", [ZONE, RACK]), kai("one", [ZONE[1], RACK[1]])], ""),
        ([named("one", [ZONE, RACK])], ""),
        ([named("one", [ZONE, RACK]), kai("one", [RACK[1], ZONE[1]])], "in another order"),
        ([named("one", [ZONE, RACK], bound=[("kai-scheduler", "x")]), kai("x", [ZONE[1]])], "lacks example.com/r"),
        ([named("one", [ZONE, RACK]), kai("x", [ZONE[1]])], 'there is no KAI Topology "one"'),
    ],
)
def test_check_finds_drift_between_the_topology_and_that_of_kai(
    desk: TopologyFolder, objects: list[dict[str, Any]], words: str
) -> None:
    desk.snapshot(*objects)
    done = desk.call("check snapshot.json --topology #one -o json")
    found = {finding["code"]: finding["message"] for finding in json.loads(done.out)["findings"]}
    assert words in found.get("SchedulerTopologyDrift", "")
    assert ("SchedulerTopologyDrift" in found) is bool(words)
    assert done.code == (6 if words else 0)
