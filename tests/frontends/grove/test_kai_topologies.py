"""KAI's own Topologies: as levels of a call, as references of a ClusterTopology, and as rendered objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from coterie.frontends.grove.kai_topology import KAI_VERSION
from coterie.planning.inputs import read_snapshot
from coterie.planning.snapshot_levels import kai_levels
from coterie.topology.levels import Topology
from tests.cli.commands.test_cluster_topology import RACK, ZONE, TopologyFolder, named, nodes
from tests.frontends.grove.objects import clique, podcliqueset
from tests.frontends.grove.test_cluster_topology import CT, CTB

KEYS = (ZONE[1], RACK[1])
SET = podcliqueset(clique("a", 8), topologyConstraint={"topologyName": "hall-a", "pack": {"required": "rack"}})


@pytest.fixture
def desk(tmp_path: Path) -> TopologyFolder:
    return TopologyFolder(tmp_path)


def topology(name: str, *levels: tuple[str, str] | str, **metadata: Any) -> dict[str, Any]:
    """Return a KAI Topology; a level is its label, or its alias and its label."""
    written = [{"nodeLabel": one} if isinstance(one, str) else {"nodeLabel": one[1], "alias": one[0]} for one in levels]
    return {
        "apiVersion": KAI_VERSION,
        "kind": "Topology",
        "metadata": {"name": name, **metadata},
        "spec": {"levels": written},
    }


def levels_of(*objects: dict[str, Any]) -> dict[str, Topology]:
    data = {"apiVersion": "v1", "kind": "List", "items": [*nodes(), *objects]}
    return kai_levels(read_snapshot(json.dumps(data).encode(), "s.json"))


def rendered(desk: TopologyFolder, words: str) -> list[dict[str, Any]]:
    done = desk.call(f"render {words}")
    assert done.code == 0, done.err
    return list(yaml.safe_load_all(done.out))


def kinds(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in manifests if one["kind"] == kind]


# Names of levels


def test_a_level_has_its_alias_for_a_name() -> None:
    assert levels_of(topology("t", ("hall", ZONE[1]), ("row", RACK[1]))) == {
        "t": Topology.of(("hall", ZONE[1]), ("row", RACK[1]))
    }


def test_a_level_without_an_alias_is_named_after_its_label() -> None:
    found = levels_of(
        topology("t", "topology.kubernetes.io/zone", "a.com/pod", ("rack", "b.com/pod"), "kubernetes.io/hostname")
    )

    assert found["t"].names == ("zone", "pod", "rack", "host")


def test_names_of_levels_are_always_legal_and_unlike() -> None:
    found = levels_of(topology("t", ("rack", "x.com/one"), "a.com/rack", ("y/alias", "b.com/rack"), "c.com/rack"))

    assert found["t"].names == ("rack", "a.com.rack", "b.com.rack", "c.com.rack")


def test_a_topology_that_kai_would_refuse_has_no_levels() -> None:
    assert levels_of(topology("t", RACK[1], RACK[1]), topology("u", "kubernetes.io/hostname", RACK[1])) == {}


# As levels of a call


def test_the_only_kai_topology_of_a_snapshot_is_taken_and_told(desk: TopologyFolder) -> None:
    desk.snapshot(topology("fabric", ("zone", ZONE[1]), ("rack", RACK[1])))

    assert desk.levels("") == ["zone", "rack"]
    for command in ("check snapshot.json", "map snapshot.json", "plan wf.yaml -c snapshot.json"):
        done = desk.call(command)
        assert done.code == 0, done.err
        assert 'warning[TopologyTaken]: the levels are those of the KAI Topology "fabric"' in done.err


def test_one_of_several_is_chosen_by_name(desk: TopologyFolder) -> None:
    desk.snapshot(topology("one", ("rack", RACK[1])), topology("two", ("hall", ZONE[1])))

    assert (
        "the cluster has several KAI Topologies (one, two), and none was chosen" in desk.call("map snapshot.json").err
    )
    assert desk.levels("--topology #two") == ["hall"]
    desk.pool("two", "topology: two")
    assert desk.levels("--config two.config.yaml") == ["hall"]
    assert "Known are: one, two." in desk.call("check snapshot.json --topology #three").err


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ("--levels a=example.com/z", ["a"]),
        ("--topology two.json#two", ["room"]),
        ("--config keys.config.yaml", ["hall"]),
    ],
)
def test_what_the_call_and_the_configuration_say_goes_before_a_kai_topology(
    desk: TopologyFolder, options: str, levels: list[str]
) -> None:
    desk.snapshot(topology("fabric", ("rack", RACK[1])))

    assert desk.levels(options) == levels


def test_a_cluster_topology_goes_before_a_kai_topology(desk: TopologyFolder) -> None:
    desk.snapshot(topology("fabric", ("rack", RACK[1])), named("one", [ZONE, RACK]))

    assert desk.levels("") == ["zone", "rack"]
    assert desk.levels("--topology #fabric") == ["rack"]


def test_a_kai_topology_goes_before_well_known_labels(desk: TopologyFolder) -> None:
    machines = nodes()
    for one in machines:
        one["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z"
    fabric = topology("fabric", ("rack", RACK[1]))
    desk.write("snapshot.json", json.dumps({"kind": "List", "apiVersion": "v1", "items": [*machines, fabric]}))

    assert desk.levels("") == ["rack"]


def test_topologies_that_were_rendered_for_pools_declare_nothing(desk: TopologyFolder) -> None:
    (own,) = kinds(rendered(desk, "wf.yaml --topology one.yaml"), "Topology")
    desk.snapshot(own, topology("fabric", ("rack", RACK[1])))

    assert desk.levels("") == ["rack"]


def test_a_set_that_names_a_topology_which_only_kai_has_gets_its_levels(desk: TopologyFolder) -> None:
    desk.write("set.json", json.dumps(SET))
    desk.snapshot(topology("hall-a", ("zone", ZONE[1]), ("rack", RACK[1])), topology("other", *KEYS))

    manifests = rendered(desk, "set.json --cluster snapshot.json")

    assert kinds(manifests, "Topology") == []
    assert {one["spec"]["topologyConstraint"]["topology"] for one in kinds(manifests, "PodGroup")} == {"hall-a"}


# As what is rendered


def test_an_external_topology_is_used_by_its_own_name_and_never_created(desk: TopologyFolder) -> None:
    for kind in (CT, CTB):
        desk.write("bound.yaml", json.dumps(named("one", [ZONE, RACK], kind, [("kai-scheduler", "theirs")])))

        manifests = rendered(desk, "wf.yaml --topology bound.yaml")

        assert kinds(manifests, "Topology") == []
        (group,) = kinds(manifests, "PodGroup")
        assert group["spec"]["topologyConstraint"]["topology"] == "theirs"


def test_an_external_topology_is_used_by_sets_too(desk: TopologyFolder) -> None:
    hall = named("hall-a", [ZONE, RACK], CTB, [("kai-scheduler", "theirs")])
    desk.write("both.yaml", yaml.safe_dump_all([hall, SET]))

    manifests = rendered(desk, "both.yaml")

    assert kinds(manifests, "Topology") == []
    assert {one["spec"]["topologyConstraint"]["topology"] for one in kinds(manifests, "PodGroup")} == {"theirs"}


def test_a_kai_topology_that_gave_the_levels_is_not_written_again(desk: TopologyFolder) -> None:
    desk.snapshot(topology("fabric", ("zone", ZONE[1]), ("rack", RACK[1])))

    manifests = rendered(desk, "wf.yaml --cluster snapshot.json")

    assert kinds(manifests, "Topology") == []
    (group,) = kinds(manifests, "PodGroup")
    assert group["spec"]["topologyConstraint"]["topology"] == "fabric"


@pytest.mark.parametrize("uid", ["", "8c1b6d8e"])
def test_check_finds_no_fault_with_a_rendered_topology(desk: TopologyFolder, uid: str) -> None:
    """The owner reference is written where the cluster says what it must be."""
    hall = named("hall-a", [ZONE, RACK], CTB)
    hall["metadata"] |= {"uid": uid} if uid else {}
    desk.write("set.json", json.dumps(SET))
    desk.snapshot(hall)

    (own,) = kinds(rendered(desk, "set.json --cluster snapshot.json"), "Topology")

    assert own["metadata"]["name"] == "hall-a"
    assert own["metadata"]["annotations"] == {"coterie.dev/cluster-topology": "hall-a"}
    owners = own["metadata"].get("ownerReferences", [])
    assert [(one["kind"], one["name"], one["uid"], one["controller"]) for one in owners] == (
        [(CTB, "hall-a", uid, True)] if uid else []
    )
    desk.snapshot(hall, own)
    done = desk.call("check snapshot.json -o json")
    assert "SchedulerTopologyDrift" not in {finding["code"] for finding in json.loads(done.out)["findings"]}


# Drift


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([named("one", [ZONE, RACK], bound=[("kai-scheduler", "x")]), topology("x", *KEYS)], ""),
        ([named("one", [ZONE, RACK]), topology("one", *KEYS)], "controlled by nobody"),
        ([named("one", [ZONE, RACK], bound=[("kai-scheduler", "x")]), topology("x", ZONE[1])], "lacks example.com/r"),
        ([named("one", [ZONE, RACK]), topology("x", ZONE[1])], 'there is no KAI Topology "one"'),
    ],
)
def test_plan_and_render_warn_of_drift_as_check_does(
    desk: TopologyFolder, objects: list[dict[str, Any]], words: str
) -> None:
    desk.snapshot(*objects)
    checked = desk.call("check snapshot.json -o json")
    assert words in " ".join(finding["message"] for finding in json.loads(checked.out)["findings"])

    for command in ("plan wf.yaml -c snapshot.json", "render wf.yaml -c snapshot.json"):
        done = desk.call(command)
        assert done.code == 0, done.err
        assert ("warning[SchedulerTopologyDrift]" in done.err) is bool(words)
        assert words in done.err
    planned = json.loads(desk.call("plan wf.yaml -c snapshot.json -o json").out)
    assert ("SchedulerTopologyDrift" in {one["code"] for one in planned["warnings"]}) is bool(words)


def test_a_plan_that_does_not_use_the_topology_says_nothing_of_its_drift(desk: TopologyFolder) -> None:
    desk.snapshot(named("one", [ZONE, RACK]), topology("one", RACK[1]))

    done = desk.call("plan wf.yaml -c snapshot.json --levels zone=example.com/z,rack=example.com/r")

    assert "SchedulerTopologyDrift" not in done.err


def test_a_topology_of_a_file_lacks_nothing_in_a_cluster_that_does_not_have_it_yet(desk: TopologyFolder) -> None:
    desk.snapshot(topology("x", ZONE[1]))

    assert "SchedulerTopologyDrift" not in desk.call("plan wf.yaml -c snapshot.json --topology one.yaml").err
