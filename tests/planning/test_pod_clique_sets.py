"""PodCliqueSets and graph deployments in a plan: the same findings have the same codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice, Reason, SpecErrors
from coterie.planning.inputs import read_snapshot
from coterie.planning.load import read_documents, workload_for
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from coterie.sources.task_labels import GROUP, TASK, WORKFLOW
from coterie.topology.levels import Topology
from tests.cli.command import call
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.dynamo.objects import Data, put
from tests.frontends.grove import objects as grove

ZONES = Topology.of(("zone", "topology.kubernetes.io/zone"))
GRAPH = dynamo.beta()
SET = grove.changed(grove.podcliqueset(), grove.constrained("set", {"topologyName": "t", "pack": {"required": "rack"}}))
FLOW: Data = {
    "workflow": {
        "name": "w",
        "tasks": [{"name": "a", "image": "i", "command": ["run"], "resource": "r"}],
        "resources": {"r": {"gpu": 1, "topology": [{"key": "rack"}]}},
    }
}


def prepared(data: Data, topology: Topology = dynamo.LEVELS, known: Mapping[str, Topology] | None = None) -> Workload:
    [written] = read_documents(json.dumps(data).encode(), "f.yaml").workloads
    return workload_for(written, Pool.for_levels(topology), known or {}, configured=False)


def faults(data: Data, topology: Topology, known: Mapping[str, Topology] | None = None) -> tuple[Fault, ...]:
    with pytest.raises(SpecErrors) as caught:
        prepared(data, topology, known)
    return caught.value.faults


def ignored(found: Workload) -> list[Notice]:
    return [notice for notice in found.notices if notice.code == "FieldIgnored"]


@pytest.mark.parametrize("data", [FLOW, SET, GRAPH], ids=["workflow", "set", "graph"])
def test_a_level_that_is_not_there_is_an_unknown_level_in_every_kind(data: Data) -> None:
    assert [fault.code for fault in faults(data, ZONES)] == [Reason.UNKNOWN_LEVEL]


@pytest.mark.parametrize("data", [FLOW, SET, GRAPH], ids=["workflow", "set", "graph"])
def test_a_topology_that_nobody_knows_is_not_checked_in_any_kind(tmp_path: Path, data: Data) -> None:
    (tmp_path / "f.yaml").write_text(json.dumps(data), encoding="utf-8")

    done = call("validate", "f.yaml", "-o", "json", cwd=tmp_path)

    assert [one["code"] for one in json.loads(done.out)["warnings"]].count("TopologyNotChecked") == 1


@pytest.mark.parametrize("data", [SET, GRAPH], ids=["set", "graph"])
def test_a_fault_by_levels_that_stand_in_for_a_topology_tells_so(data: Data) -> None:
    """The file names a ClusterTopology that nobody gave; it cannot be wrong about one."""
    assumed = 'The ClusterTopology "t" was not given; the levels of this call are used instead.'

    [mistaken] = faults(data, ZONES)
    [known] = faults(data, ZONES, {"t": ZONES})

    assert mistaken.message.startswith('the ClusterTopology "t" was not given, and the levels used instead have no ')
    assert known.message.removeprefix("the ").startswith('ClusterTopology "t" has no ')
    assert mistaken.hint.endswith(assumed)
    assert mistaken.hint.removesuffix(f" {assumed}") == known.hint


@pytest.mark.parametrize("data", [SET, GRAPH], ids=["set", "graph"])
def test_validation_by_levels_of_the_call_says_nothing_about_a_topology_that_nobody_gave(
    tmp_path: Path, data: Data
) -> None:
    (tmp_path / "f.yaml").write_text(json.dumps(data), encoding="utf-8")
    done = call("validate", "f.yaml", "--levels", "zone=z", "-o", "json", cwd=tmp_path)
    [fault] = json.loads(done.out)["errors"]

    assert fault["code"] == "UnknownLevel"
    assert fault["message"].startswith('the ClusterTopology "t" was not given, and the levels used instead have no ')


@pytest.mark.parametrize("data", [SET, GRAPH], ids=["set", "graph"])
def test_a_fault_that_has_nothing_to_do_with_levels_does_not_speak_of_them(data: Data) -> None:
    broken = grove.assigned("spec.template.cliques.0.name", "A B") if data is SET else put("spec.components.0.name", "")
    found = dict(data) | {"spec": json.loads(json.dumps(data["spec"]))}
    broken(found)

    assert [fault for fault in faults(found, dynamo.LEVELS) if "was not given" in fault.hint] == []


def test_only_fields_that_the_user_wrote_are_said_to_be_ignored() -> None:
    """For TensorRT-LLM the set has an order in which pods start; the graph says nothing of it."""
    graph = dynamo.changed(GRAPH, put("spec.backendFramework", "trtllm"))

    assert ignored(prepared(graph)) == []


def test_what_the_user_wrote_is_said_to_be_ignored_at_its_line() -> None:
    graph = dynamo.changed(
        GRAPH,
        put("spec.backendFramework", "trtllm"),
        put("spec.priorityClassName", "high"),
        put("spec.restart", {"id": "1"}),
    )

    found = ignored(prepared(graph))

    assert [notice.path for notice in found] == [("spec", "restart"), ("spec", "priorityClassName")]
    assert all("cliqueStartupType" not in notice.message for notice in found)


LONG = "a-very-long-name-for-a-graph-of-models-that-all-run-in-one-hall-of-the-house"


def planned(graph: Data, labels: Mapping[str, str], namespace: str = "serving") -> Plan:
    """Plan a graph on a cluster of four nodes, with one running pod that has these labels."""
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"topology.kubernetes.io/zone": "z"}},
            "status": {
                "allocatable": {"cpu": "64", "memory": "1Ti", "pods": "99", "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for number in range(4)
    ]
    pod: Any = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace, "labels": dict(labels)},
        "spec": {"nodeName": "n3", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, pod]}).encode()
    return Planner(read_snapshot(data, "s.json").cluster).plan(prepared(graph, ZONES))


@pytest.mark.parametrize("name", ["chat", LONG], ids=["short", "shortened"])
@pytest.mark.parametrize("maker", ["Coterie", "Grove"])
def test_running_pods_of_a_graph_are_its_own_whoever_made_them_and_however_its_name_was_shortened(
    name: str, maker: str
) -> None:
    graph = dynamo.changed(GRAPH, put("metadata.name", name), put("spec.components", GRAPH["spec"]["components"][:1]))
    workload = prepared(graph, ZONES)
    (gang,) = workload.gangs
    (task,) = gang.all_tasks()
    labels = {WORKFLOW: label_value(name), GROUP: gang.name, TASK: task.name}
    if maker == "Grove":
        clique, _, index = task.name.rpartition("-")
        labels = {
            "app.kubernetes.io/part-of": workload.set_name,
            "grove.io/podgang": gang.name,
            "grove.io/podclique": clique,
            "grove.io/podclique-pod-index": index,
        }

    assert planned(graph, labels).gangs[0].survivors == {task.name: "n3"}
    assert planned(graph, labels, namespace="other").gangs[0].survivors == {}
    assert (workload.set_name == name) is (name != LONG)


def test_a_workload_without_a_namespace_is_where_its_pods_are() -> None:
    graph = dynamo.changed(GRAPH, put("spec.components", GRAPH["spec"]["components"][:1]))
    del graph["metadata"]["namespace"]
    (gang,) = prepared(graph, ZONES).gangs
    (task,) = gang.all_tasks()
    labels = {WORKFLOW: "chat", GROUP: gang.name, TASK: task.name}

    assert planned(graph, labels, namespace="anywhere").gangs[0].survivors == {task.name: "n3"}
