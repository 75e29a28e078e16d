"""Levels and topologies that vanish on a real API server with KAI: reported; running work stays, and new work waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab import Lab, nodes
from tests.cli.command import call
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import beta
from tests.frontends.grove.objects import podcliqueset
from tests.lab.gangs import CLIQUE, ZONE, phases, two_models, two_zones
from tests.operator.conftest import Operate
from tests.operator.topologies.test_topologies_on_lab import condition, declared, waits

Object = dict[str, Any]
SETS, GRAPHS = "podcliquesets", "dynamographdeployments"
BINDINGS = "clustertopologybindings"


@pytest.fixture
def workloads(workload_lab: Lab) -> Lab:
    """Give the cluster, empty."""
    workload_lab.reset(120.0)
    return workload_lab


def here(data: Object) -> Object:
    """Return an object in a namespace that exists."""
    return {**data, "metadata": {**data["metadata"], "namespace": "default"}}


def told(lab: Lab, kind: str, name: str) -> tuple[str, str]:
    found = ((lab.get(kind, name, "default") or {}).get("status") or {}).get("conditions") or [{}]
    return found[0].get("status", ""), found[0].get("reason", "")


def events_of(lab: Lab, name: str) -> list[tuple[str, str]]:
    """Return the operator's events about an object, in their order."""
    found = [each for each in lab.objects("events", "default") if each["involvedObject"]["name"] == name]
    found.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [(each["type"], each["reason"]) for each in found]


def test_sets_and_graphs_are_told_of_levels_that_vanish_and_recover_by_themselves(
    workloads: Lab, operate: Operate
) -> None:
    lab = workloads
    operate(lab)
    free = here(podcliqueset())
    free["metadata"]["name"] = "free"
    lab.api.create(topology("t"))
    for each in (here(packed()), free, here(beta())):
        lab.api.create(each)
    lab.wait(lambda: told(lab, SETS, "set") == ("False", "AllClusterTopologyLevelsAvailable"), 60, "all is there")
    lab.wait(lambda: told(lab, GRAPHS, "chat") == ("True", "AllTopologyLevelsAvailable"), 60, "for the graph as well")
    lab.wait(lambda: told(lab, SETS, "free")[0] == "False", 60, "a set without constraints has the condition")
    before = (lab.get(SETS, "free", "default") or {})["metadata"]["resourceVersion"]

    listed = call("topology", "users", "t", "--cluster", "context:", "--delete", "-o", "json")
    users = json.loads(listed.out)["users"]
    assert [(each["kind"], each["name"]) for each in users] == [
        ("DynamoGraphDeployment", "chat"),
        ("PodCliqueSet", "set"),
    ]
    lab.apply(topology("t", "zone", "host"))
    lab.wait(lambda: told(lab, SETS, "set") == ("True", "ClusterTopologyLevelsUnavailable"), 60, "the level is gone")
    lab.wait(lambda: told(lab, GRAPHS, "chat") == ("False", "TopologyLevelsUnavailable"), 60, "the graph is told")
    applied = (lab.get(GRAPHS, "chat", "default") or {})["status"]["appliedTopologyConstraints"]
    assert [(each["required"], each["applied"]) for each in applied] == [("zone", True), ("rack", False)]
    lab.apply(topology("t"))
    lab.wait(lambda: told(lab, SETS, "set")[0] == "False", 60, "it is back")
    lab.wait(lambda: told(lab, GRAPHS, "chat")[0] == "True", 60, "for the graph as well")

    lab.api.delete(BINDINGS, "t")
    lab.wait(lambda: told(lab, SETS, "set") == ("True", "ClusterTopologyNotFound"), 60, "the topology is gone")
    lab.wait(lambda: told(lab, GRAPHS, "chat") == ("False", "TopologyDefinitionNotFound"), 60, "the graph is told")
    lab.api.create(topology("t"))
    lab.wait(lambda: told(lab, SETS, "set")[0] == "False", 60, "it is back")
    lab.wait(lambda: told(lab, GRAPHS, "chat")[0] == "True", 60, "for the graph as well")

    back = ("Normal", "AllClusterTopologyLevelsAvailable")
    lost, missing = ("Warning", "ClusterTopologyLevelsUnavailable"), ("Warning", "ClusterTopologyNotFound")
    assert events_of(lab, "set") == [lost, back, missing, back]
    assert [reason for _, reason in events_of(lab, "chat")] == [
        "TopologyLevelsUnavailable",
        "AllTopologyLevelsAvailable",
        "TopologyDefinitionNotFound",
        "AllTopologyLevelsAvailable",
    ]
    # An object that no change concerned was not written.
    assert (lab.get(SETS, "free", "default") or {})["metadata"]["resourceVersion"] == before


def test_a_graph_follows_the_condition_of_its_set(workloads: Lab, operate: Operate) -> None:
    lab = workloads
    operate(lab, own=("DynamoGraphDeployment",))
    lab.api.create(topology("t"))
    lab.api.create(here(beta()))
    lab.wait(lambda: told(lab, GRAPHS, "chat")[0] == "True", 60, "its own levels count without a set")
    made = here(packed())
    made["metadata"] |= {"name": "chat", "labels": {"nvidia.com/dynamo-graph-deployment-name": "chat"}}
    lab.api.create(made)
    lab.wait(lambda: told(lab, GRAPHS, "chat") == ("Unknown", "TopologyConditionPending"), 60, "the set says nothing")
    # The set belongs to another operator here, which writes its condition.
    said = {"type": "TopologyLevelsUnavailable", "status": "True", "reason": "ClusterTopologyNotFound", "message": "x"}
    conditions = [{**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    lab.api.patch(SETS, "chat", {"status": {"conditions": conditions}}, status=True)
    lab.wait(lambda: told(lab, GRAPHS, "chat") == ("False", "TopologyDefinitionNotFound"), 60, "it is followed")


def test_a_required_level_that_is_gone_blocks_new_work_and_evicts_nothing(workloads: Lab, operate: Operate) -> None:
    lab = workloads
    nodes.add(lab, two_zones())
    lab.queue("default")
    operate(lab)
    lab.apply(declared(ZONE, CLIQUE))
    lab.wait(lambda: condition(lab)[0] == "False", 60, "the levels are there")
    lab.apply(two_models("run", 1))
    lab.wait(lambda: phases(lab) == {"Running"}, 60, "it runs")
    running = {each["metadata"]["uid"] for each in lab.objects("pods", "default")}

    for without_level in (True, False):
        if without_level:
            lab.apply(declared(ZONE))
        else:
            lab.api.delete("clustertopologies", "racks")
        lab.wait(lambda: CLIQUE not in labels_of(lab), 60, "KAI no longer has the level")
        lab.apply(two_models("train", 1))
        lab.wait(lambda: waits(lab), 60, "KAI refuses the level that is not there")
        assert {each["metadata"]["uid"] for each in bound(lab)} == running
        lab.apply(declared(ZONE, CLIQUE))
        lab.wait(lambda: len(bound(lab)) == 4, 60, "it is placed once the level is back")
        assert running <= {each["metadata"]["uid"] for each in bound(lab)}
        remove(lab, "train")


def labels_of(lab: Lab) -> list[str]:
    found = lab.get("topologies.kai.scheduler", "racks")
    return [each["nodeLabel"] for each in found["spec"]["levels"]] if found else []


def bound(lab: Lab) -> list[Object]:
    return [each for each in lab.objects("pods", "default") if each["spec"].get("nodeName")]


def remove(lab: Lab, gang: str) -> None:
    for each in lab.objects("pods", "default"):
        if each["metadata"]["annotations"]["pod-group-name"] == gang:
            lab.kubectl("delete", "pod", each["metadata"]["name"], "--grace-period=0", "--force")
    lab.kubectl("delete", "podgroups.scheduling.run.ai", gang)
