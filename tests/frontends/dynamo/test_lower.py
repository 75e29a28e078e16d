"""The PodCliqueSet of a graph deployment: its parts, its names, and source paths in the user's file."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import FieldError, SpecErrors
from coterie.frontends.dynamo.lower import LoweredGraph, lower_graph
from coterie.frontends.dynamo.names import fitted, fnv1a, set_name
from coterie.frontends.dynamo.settings import DynamoSettings
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules import admission
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from coterie.frontends.kubernetes.objects import field_fault, resource_of
from tests.frontends.dynamo.objects import TOPOLOGIES, Change, Data, alpha, beta, changed, drop, pod, put, read

TODAY = GroveSettings(form=Form.GROVE_HEAD)
FRONTEND, DECODE = "spec.components.0", "spec.components.1"
FREE = (drop("spec.topologyConstraint"), drop(f"{DECODE}.topologyConstraint"))


def lowered(data: Data, settings: DynamoSettings | None = None) -> LoweredGraph:
    return lower_graph(read(data), settings or DynamoSettings())


def template(data: Data, settings: DynamoSettings | None = None) -> Any:
    return lowered(data, settings).manifest["spec"]["template"]


def clique(data: Data, name: str, settings: DynamoSettings | None = None) -> Any:
    [found] = [each for each in template(data, settings)["cliques"] if each["name"] == name]
    return found


def main(data: Data, name: str) -> Any:
    return clique(data, name)["spec"]["podSpec"]["containers"][0]


PIECE = {"topologyConstraint": {"topologyName": "t", "pack": {"preferred": "rack"}}}
NATIVE = {"apiVersion": "grove.io/v1alpha1", "value": PIECE}
VARIANTS: dict[str, tuple[Data, tuple[Change, ...]]] = {
    "v1beta1": (beta(), ()),
    "v1alpha1": (alpha(), ()),
    "unconstrained": (beta(), FREE),
    "components alone": (beta(), (drop("spec.topologyConstraint.packDomain"),)),
    "overrides": (beta(), (*FREE, *(put(f"{each}.providerOverride", NATIVE) for each in (FRONTEND, DECODE)))),
    "trtllm": (beta(), (put("spec.backendFramework", "trtllm"),)),
    "forced group": (beta(), (put(f"{FRONTEND}.experimental", {"grove": {"forceScalingGroup": True}}),)),
    "long name": (beta(), (put("metadata.name", "a-very-long-name-for-a-graph-of-models-in-one-hall"),)),
}  # fmt: skip


@pytest.mark.parametrize(("data", "changes"), VARIANTS.values(), ids=VARIANTS)
def test_the_podcliqueset_of_a_valid_graph_is_valid_in_todays_form(data: Data, changes: tuple[Change, ...]) -> None:
    pcs = read_podcliqueset(resource_of(lowered(changed(data, *changes)).manifest))
    assert admission.create_faults(pcs, TOPOLOGIES, TODAY) == []


def test_a_component_that_spans_nodes_is_a_group_of_leader_and_workers() -> None:
    found = template(beta())
    assert found["podCliqueScalingGroups"] == [
        {
            "name": "decode",
            "cliqueNames": ["decode-ldr", "decode-wkr"],
            "replicas": 2,
            "minAvailable": 1,
            "topologyConstraint": {"pack": {"required": "rack"}},
        }
    ]
    sizes = [(each["name"], each["spec"]["replicas"], each["spec"]["minAvailable"]) for each in found["cliques"]]
    assert sizes == [("frontend", 1, 1), ("decode-ldr", 1, 1), ("decode-wkr", 3, 3)]
    assert all("topologyConstraint" not in each for each in found["cliques"])
    assert found["topologyConstraint"] == {"topologyName": "t", "pack": {"required": "zone"}}


def test_g60_without_a_level_for_the_graph_each_constrained_component_names_the_topology() -> None:
    data = changed(
        beta(),
        drop("spec.topologyConstraint.packDomain"),
        put(f"{FRONTEND}.topologyConstraint", {"packDomain": "host"}),
    )
    assert "topologyConstraint" not in template(data)
    assert clique(data, "frontend")["topologyConstraint"] == {"topologyName": "t", "pack": {"required": "host"}}
    [group] = template(data)["podCliqueScalingGroups"]
    assert group["topologyConstraint"] == {"topologyName": "t", "pack": {"required": "rack"}}


def test_replicas_and_the_least_of_them_are_the_components_own() -> None:
    data = changed(beta(), put(f"{FRONTEND}.replicas", 3), put(f"{FRONTEND}.minAvailable", 2))
    spec = clique(data, "frontend")["spec"]
    assert (spec["replicas"], spec["minAvailable"]) == (3, 2)


def test_a_forced_group_has_one_clique_of_one_pod() -> None:
    data = changed(beta(), put(f"{FRONTEND}.experimental", {"grove": {"forceScalingGroup": True}}))
    data["spec"]["components"][0] |= {"replicas": 3, "topologyConstraint": {"packDomain": "host"}}
    group = template(data)["podCliqueScalingGroups"][0]
    assert (group["name"], group["cliqueNames"], group["replicas"]) == ("frontend", ["frontend"], 3)
    assert group["topologyConstraint"] == {"pack": {"required": "host"}}
    assert "topologyConstraint" not in clique(data, "frontend")


def test_overrides_are_merged_where_they_belong_and_are_the_way_to_a_preference() -> None:
    constraint = {"pack": {"preferred": "host"}}
    data = changed(
        beta(),
        *FREE,
        put("spec.providerOverride", {**NATIVE, "value": {"spec": {"template": PIECE}}}),
        put(f"{FRONTEND}.providerOverride", {**NATIVE, "value": {"topologyConstraint": constraint}}),
        put(
            f"{DECODE}.multinode.worker", {"providerOverride": {**NATIVE, "value": {"topologyConstraint": constraint}}}
        ),
    )
    assert template(data)["topologyConstraint"] == PIECE["topologyConstraint"]
    assert clique(data, "frontend")["topologyConstraint"] == constraint
    assert clique(data, "decode-wkr")["topologyConstraint"] == constraint
    assert "topologyConstraint" not in clique(data, "decode-ldr")
    assert "topologyConstraint" not in template(data)["podCliqueScalingGroups"][0]


def test_only_trtllm_across_nodes_starts_in_an_order() -> None:
    data = changed(beta(), put("spec.backendFramework", "trtllm"))
    assert template(data)["cliqueStartupType"] == "CliqueStartupTypeExplicit"
    assert clique(data, "decode-ldr")["spec"]["startsAfter"] == ["decode-wkr"]
    assert "startsAfter" not in clique(data, "decode-wkr")["spec"]
    assert template(beta())["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    single = changed(data, drop(f"{DECODE}.multinode"))
    assert template(single)["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"


def test_pods_go_to_kai_and_into_a_queue() -> None:
    found = clique(beta(), "frontend")
    assert found["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"
    assert found["labels"]["kai.scheduler/queue"] == "dynamo"
    asked = changed(beta(), put("metadata.annotations", {"nvidia.com/kai-scheduler-queue": " research "}))
    assert clique(asked, "frontend")["labels"]["kai.scheduler/queue"] == "research"
    without = clique(beta(), "frontend", DynamoSettings(kai=False))
    assert "schedulerName" not in without["spec"]["podSpec"]
    assert "kai.scheduler/queue" not in without["labels"]


def test_a_scheduler_that_the_user_chose_stays() -> None:
    data = changed(beta(), put(f"{FRONTEND}.podTemplate.spec.schedulerName", "volcano"))
    found = clique(data, "frontend")
    assert found["spec"]["podSpec"]["schedulerName"] == "volcano"
    assert "kai.scheduler/queue" not in found["labels"]


def test_labels_and_annotations_of_the_graph_reach_the_set_and_the_pods() -> None:
    data = changed(
        beta(),
        put("spec.labels", {"team": "a", "tier": "x"}),
        put("spec.annotations", {"grove.io/mnnvl-group": "fabric"}),
        put(f"{FRONTEND}.podTemplate.metadata", {"labels": {"tier": "y"}}),
    )
    metadata = lowered(data).manifest["metadata"]
    assert metadata["labels"] == {"team": "a", "tier": "x", "nvidia.com/dynamo-graph-deployment-name": "chat"}
    assert metadata["annotations"] == {"grove.io/mnnvl-group": "fabric"}
    labels = clique(data, "frontend")["labels"]
    assert (labels["team"], labels["tier"]) == ("a", "y")
    assert labels["nvidia.com/dynamo-component-type"] == "frontend"


def test_the_environment_of_the_graph_yields_to_that_of_the_component() -> None:
    data = changed(
        beta(),
        put("spec.env", [{"name": "A", "value": "graph"}, {"name": "B", "value": "graph"}]),
        put(f"{FRONTEND}.podTemplate.spec.containers.0.env", [{"name": "B", "value": "own"}]),
    )
    assert main(data, "frontend")["env"] == [{"name": "A", "value": "graph"}, {"name": "B", "value": "own"}]


@pytest.mark.parametrize(("role", "base"), [("ldr", "0"), ("wkr", "1")])
def test_pods_of_one_replica_find_their_leader_and_their_rank(role: str, base: str) -> None:
    env = {each["name"]: each["value"] for each in main(beta(), f"decode-{role}")["env"]}
    assert env == {
        "COTERIE_LEADER_HOST": "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-decode-ldr-0.$(GROVE_HEADLESS_SERVICE)",
        "COTERIE_NODE_COUNT": "4",
        "COTERIE_NODE_RANK_BASE": base,
    }
    assert "env" not in main(beta(), "frontend")


def test_shared_memory_is_mounted_unless_it_is_unwanted_or_there_already() -> None:
    mount = {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108 - where engines look for it
    assert main(beta(), "frontend")["volumeMounts"] == [mount]
    assert "volumeMounts" not in main(changed(beta(), put(f"{FRONTEND}.sharedMemorySize", "0")), "frontend")
    own = [{"name": "mine", "mountPath": "/dev/shm"}]  # noqa: S108 - the same
    data = changed(beta(), put(f"{FRONTEND}.podTemplate.spec.containers.0.volumeMounts", own))
    assert main(data, "frontend")["volumeMounts"] == own
    sized = changed(beta(), put(f"{FRONTEND}.sharedMemorySize", "16Gi"))
    [volume] = clique(sized, "frontend")["spec"]["podSpec"]["volumes"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}


def test_what_the_operators_configuration_decides_is_left_out_unless_set() -> None:
    assert "terminationDelay" not in template(beta())
    assert template(changed(beta(), put("spec.priorityClassName", "high")))["priorityClassName"] == "high"
    assert template(beta())["headlessServiceConfig"] == {"publishNotReadyAddresses": True}


def test_a_component_without_replicas_is_left_out() -> None:
    data = changed(beta(), put(f"{DECODE}.replicas", 0))
    assert [each["name"] for each in template(data)["cliques"]] == ["frontend"]
    assert "podCliqueScalingGroups" not in template(data)


def test_a_graph_that_no_set_can_stand_for_is_refused() -> None:
    data = changed(beta(), put(f"{DECODE}.experimental", {"gpuMemoryService": {}}))
    with pytest.raises(SpecErrors, match="gpuMemoryService"):
        lower_graph(read(data))


def test_the_users_template_is_not_changed_by_lowering() -> None:
    graph = read(beta())
    lower_graph(graph)
    assert graph.components[1].template == pod(gpus=4)


def test_the_name_of_the_set_is_the_graphs_or_its_beginning_with_a_mark() -> None:
    assert fnv1a(b"") == 0x811C9DC5
    assert fnv1a(b"foobar") == 0xBF9CF968
    assert fitted("short", 8) == "short"
    assert fitted("foobarfoobar", 8) == f"foo-{fnv1a(b'foobarfoobar') & 0xFFFF:04x}"
    graph = read(changed(beta(), put("metadata.name", "x" * 60)))
    name = set_name(graph.name, graph.components)
    assert len(name) == 45 - len("decode") - len("decode-ldr")
    assert lowered(beta()).manifest["metadata"]["name"] == "chat"


MAIN = ("spec", "podSpec", "containers", 0, "resources")
WAYS = [
    (beta(), ("topologyConstraint", "pack", "required"), ("spec", "topologyConstraint", "packDomain")),
    (alpha(), ("topologyConstraint", "topologyName"), ("spec", "topologyConstraint", "topologyProfile")),
    (beta(), ("cliques", 2, "name"), ("spec", "components", 1, "name")),
    (beta(), ("cliques", 2, *MAIN), ("spec", "components", 1, "podTemplate", "spec", "containers", 0, "resources")),
    (alpha(), ("cliques", 0, *MAIN), ("spec", "services", "Decode", "resources")),
    (alpha(), ("cliques", 2, "name"), ("spec", "services", "Frontend")),
    (
        alpha(),
        ("cliques", 2, "spec", "podSpec", "containers", 0, "image"),
        ("spec", "services", "Frontend", "extraPodSpec", "mainContainer", "image"),
    ),
    (
        alpha(),
        ("podCliqueScalingGroups", 0, "topologyConstraint"),
        ("spec", "services", "Decode", "topologyConstraint"),
    ),
    (beta(), ("podCliqueScalingGroups", 0, "replicas"), ("spec", "components", 1, "replicas")),
    (beta(), ("cliques", 2, "spec", "replicas"), ("spec", "components", 1, "multinode", "nodeCount")),
    (beta(), ("priorityClassName",), ("spec", "priorityClassName")),
]


@pytest.mark.parametrize(("data", "made", "written"), WAYS)
def test_every_part_of_the_set_leads_back_to_what_the_user_wrote(
    data: Data, made: tuple[str | int, ...], written: tuple[str | int, ...]
) -> None:
    assert lowered(data).written(("spec", "template", *made)) == written


def test_an_override_leads_back_to_itself() -> None:
    data = changed(beta(), *FREE, put(f"{DECODE}.providerOverride", NATIVE))
    path = ("spec", "template", "podCliqueScalingGroups", 0, "topologyConstraint", "pack", "preferred")
    there = ("spec", "components", 1, "providerOverride", "value", "topologyConstraint", "pack", "preferred")
    assert lowered(data).written(path) == there


def test_a_fault_of_the_set_points_into_the_graphs_file_and_keeps_groves_field() -> None:
    found = lowered(changed(beta(), put(f"{DECODE}.podTemplate.spec.nodeName", "n1")))
    fault = field_fault(FieldError.INVALID, ("spec", "template", "cliques", 1, "spec", "podSpec", "nodeName"), "no")
    blamed = found.blamed(fault)
    assert blamed.field == "spec.template.cliques[1].spec.podSpec.nodeName"
    assert blamed.place is not None
    assert "nodeName" in blamed.place.frame[-1][1]


def test_rules_of_grove_that_a_graph_breaks_are_blamed_on_its_file() -> None:
    data = changed(beta(), put(f"{FRONTEND}.podTemplate.spec.schedulerName", "default-scheduler"))
    found = lowered(data)
    pcs = read_podcliqueset(resource_of(found.manifest))
    faults = [found.blamed(fault) for fault in admission.create_faults(pcs, TOPOLOGIES, TODAY)]
    assert faults
    assert all(fault.place is not None and fault.place.line for fault in faults)
