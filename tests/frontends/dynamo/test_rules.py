"""The rules of graph deployments, each as an input and its exact findings.

The ids G58 to G66 are numbers of cases in the facts about Grove and Dynamo that the rules were written from.
"""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import Reason
from coterie.frontends.dynamo.rules.admission import planning_faults, warnings
from coterie.frontends.dynamo.settings import DEFAULTS, DynamoSettings
from tests.frontends.dynamo.objects import (
    TOPOLOGIES,
    Change,
    alpha,
    beta,
    changed,
    created,
    drop,
    named,
    pod,
    put,
    read,
    updated,
)

TC = "spec.topologyConstraint"
C0, C1 = "spec.components[0]", "spec.components[1]"
FRONTEND, DECODE = "spec.components.0", "spec.components.1"
NO_ROOT = drop(TC)
PIECE = {"topologyConstraint": {"topologyName": "t", "pack": {"preferred": "rack"}}}
ROOT = {"apiVersion": "grove.io/v1alpha1", "value": {"spec": {"template": PIECE}}}
FREE = (NO_ROOT, drop(f"{DECODE}.topologyConstraint"))

CREATE: dict[str, tuple[tuple[Change, ...], list[tuple[str, str]]]] = {
    "valid": ((), []),
    "unconstrained": (FREE, []),
    "G58": ((NO_ROOT,), [("Required", TC)]),
    "G59": ((drop(f"{TC}.packDomain"), drop(f"{DECODE}.topologyConstraint")), [("Required", f"{TC}.packDomain")]),
    "G59 topology missing": (
        (put(TC, {"clusterTopologyName": "u"}), drop(f"{DECODE}.topologyConstraint")),
        [("Required", f"{TC}.packDomain"), ("Invalid", f"{TC}.clusterTopologyName")],
    ),
    "G60": ((drop(f"{TC}.packDomain"),), []),
    "G61": ((put(f"{TC}.packDomain", "pod"),), [("Invalid", f"{TC}.packDomain")]),
    "G61 schema": ((put(f"{TC}.packDomain", "Bad_Domain"),), [("Invalid", f"{TC}.packDomain")]),
    "G62": ((put(f"{TC}.packDomain", "host"),), [("Invalid", f"{C1}.topologyConstraint.packDomain")]),
    "G65": (
        (put("spec.providerOverride", ROOT),),
        [("Forbidden", "spec.providerOverride.value")],
    ),
    "G66 target": (
        (*FREE, put("spec.providerOverride", {**ROOT, "target": "PodCliqueTemplateSpec"})),
        [("Invalid", "spec.providerOverride.target")],
    ),
    "G66 field": (
        (*FREE, put("spec.providerOverride", {**ROOT, "value": {"spec": {"replicas": 2, "template": PIECE}}})),
        [("Forbidden", "spec.providerOverride.value.spec.replicas")],
    ),
    "equal levels": ((put(f"{DECODE}.topologyConstraint.packDomain", "zone"),), []),
    "component level unknown": (
        (put(f"{DECODE}.topologyConstraint.packDomain", "row"),),
        [("Invalid", f"{C1}.topologyConstraint.packDomain")],
    ),
    "empty topology name": ((put(f"{TC}.clusterTopologyName", ""),), [("Invalid", f"{TC}.clusterTopologyName")]),
    "no topology name": ((drop(f"{TC}.clusterTopologyName"),), [("Required", f"{TC}.clusterTopologyName")]),
    "topology named on a component": (
        (put(f"{DECODE}.topologyConstraint.clusterTopologyName", "t"),),
        [("Forbidden", f"{C1}.topologyConstraint.clusterTopologyName")],
    ),
    "component constraint without a level": (
        (put(f"{DECODE}.topologyConstraint", {}),),
        [("Required", f"{C1}.topologyConstraint.packDomain")],
    ),
    "no components": (
        (put("spec.components", []), NO_ROOT),
        [("Required", "spec.components")],
    ),
    "26 components": (
        (put("spec.components", [{"name": f"c{n}", "podTemplate": pod()} for n in range(26)]), NO_ROOT),
        [("Invalid", "spec.components")],
    ),
    "names differ in case only": ((put(f"{DECODE}.name", "FRONTEND"),), [("Duplicate", f"{C1}.name")]),
    "same name": ((put(f"{DECODE}.name", "Frontend"),), [("Duplicate", f"{C1}.name")]),
    "clique of another component": ((put(f"{FRONTEND}.name", "decode-wkr"),), [("Duplicate", f"{C1}.name")]),
    "two endpoint pickers": (
        (put(f"{FRONTEND}.type", "epp"), put(f"{DECODE}.type", "epp")),
        [("Invalid", "spec.components")],
    ),
    "name budget": ((put(f"{DECODE}.name", "d" * 19),), [("Invalid", f"{C1}.name")]),
    "name within budget": ((put(f"{DECODE}.name", "d" * 18),), []),
    "negative replicas": ((put(f"{DECODE}.replicas", -1),), [("Invalid", f"{C1}.replicas")]),
    "replicas as text": ((put(f"{DECODE}.replicas", "2"),), [("Invalid", f"{C1}.replicas")]),
    "minAvailable above replicas": ((put(f"{DECODE}.minAvailable", 3),), [("Invalid", f"{C1}.minAvailable")]),
    "minAvailable with no replicas": ((put(f"{DECODE}.minAvailable", 3), put(f"{DECODE}.replicas", 0)), []),
    "minAvailable 0": ((put(f"{DECODE}.minAvailable", 0),), [("Invalid", f"{C1}.minAvailable")]),
    "one node is not multinode": (
        (put(f"{DECODE}.multinode.nodeCount", 1),),
        [("Invalid", f"{C1}.multinode.nodeCount")],
    ),
    "no main container": (
        (put(f"{DECODE}.podTemplate.spec.containers.0.name", "engine"),),
        [("Required", f"{C1}.podTemplate.spec.containers")],
    ),
    "no image": (
        (drop(f"{DECODE}.podTemplate.spec.containers.0.image"),),
        [("Required", f"{C1}.podTemplate.spec.containers[0].image")],
    ),
    "negative shared memory": ((put(f"{DECODE}.sharedMemorySize", "-1Gi"),), [("Invalid", f"{C1}.sharedMemorySize")]),
    "unknown field": ((put("spec.topologyConstraints", {}),), [("Invalid", "spec.topologyConstraints")]),
    "several faults at once": (
        (put(f"{TC}.packDomain", "pod"), put(f"{DECODE}.minAvailable", 3), put(f"{FRONTEND}.podTemplate", {})),
        [
            ("Invalid", f"{TC}.packDomain"),
            ("Required", f"{C0}.podTemplate.spec.containers"),
            ("Invalid", f"{C1}.minAvailable"),
        ],
    ),
}

POLICY = "spec.experimental.kvTransferPolicy"
POLICIES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("by topology", {"clusterTopologyName": "t"}, []),
    ("by label", {"labelKey": "fabric.example/rack"}, []),
    ("by both", {"clusterTopologyName": "t", "labelKey": "a/b"}, [("Invalid", POLICY)]),
    ("by neither", {}, [("Invalid", POLICY)]),
    ("preferred without weight", {"labelKey": "a", "enforcement": "preferred"}, [("Invalid", POLICY)]),
    ("weight without preferred", {"labelKey": "a", "preferredWeight": 0.5}, [("Invalid", POLICY)]),
    ("weight", {"labelKey": "a", "enforcement": "preferred", "preferredWeight": 0.5}, []),
    ("weight 2", {"labelKey": "a", "preferredWeight": 2.0}, [("Invalid", f"{POLICY}.preferredWeight")]),
    ("bad name", {"clusterTopologyName": "T_1"}, [("Invalid", f"{POLICY}.clusterTopologyName")]),
    ("missing", {"clusterTopologyName": "u"}, [("Invalid", f"{POLICY}.clusterTopologyName")]),
    ("unknown level", {"clusterTopologyName": "t", "domain": "row"}, [("Invalid", f"{POLICY}.domain")]),
    ("a whole number as weight", {"labelKey": "a", "enforcement": "preferred", "preferredWeight": 1}, []),
]
CREATE |= {
    f"policy {name}": ((put(POLICY, {"domain": "rack", **policy}),), expected) for name, policy, expected in POLICIES
}

COMPONENT_PIECE = {"apiVersion": "grove.io/v1alpha1", "value": PIECE}
CREATE |= {
    f"override {name}": ((*FREE, put(path, override)), expected)
    for name, path, override, expected in [
        ("of the set", "spec.providerOverride", ROOT, []),
        ("of a group", f"{DECODE}.providerOverride", {**COMPONENT_PIECE, "target": "PodCliqueScalingGroupConfig"}, []),
        ("of a clique", f"{FRONTEND}.providerOverride", {**COMPONENT_PIECE, "target": "PodCliqueTemplateSpec"}, []),
        ("of workers", f"{DECODE}.multinode.worker.providerOverride", COMPONENT_PIECE, []),
        ("of a role in a list", f"{DECODE}.roles", [{"name": "leader", "providerOverride": COMPONENT_PIECE}], []),
        (
            "of a role of a single-node component",
            f"{FRONTEND}.roles",
            [{"name": "leader", "providerOverride": COMPONENT_PIECE}],
            [("Forbidden", f"{C0}.roles[0].providerOverride")],
        ),
        (
            "target of a single-node component on a group",
            f"{DECODE}.providerOverride",
            {**COMPONENT_PIECE, "target": "PodCliqueTemplateSpec"},
            [("Invalid", f"{C1}.providerOverride.target")],
        ),
        (
            "of another API",
            "spec.providerOverride",
            {**ROOT, "apiVersion": "grove.io/v1"},
            [("NotSupported", "spec.providerOverride.apiVersion")],
        ),
        (
            "that says nothing",
            f"{DECODE}.providerOverride",
            {**COMPONENT_PIECE, "value": {}},
            [("Invalid", f"{C1}.providerOverride.value.topologyConstraint")],
        ),
        (
            "of a list",
            "spec.providerOverride",
            {**ROOT, "value": {"spec": []}},
            [("Invalid", "spec.providerOverride.value.spec")],
        ),
    ]
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), CREATE.values(), ids=CREATE)
def test_creating_a_graph_names_every_fault_and_no_other(
    changes: tuple[Change, ...], expected: list[tuple[str, str]]
) -> None:
    faults = created(changed(beta(), *changes))
    assert [named(fault) for fault in faults] == expected
    assert all(fault.place is not None and fault.place.line and fault.message for fault in faults)


BEFORE = changed(beta(), put(f"{FRONTEND}.topologyConstraint", {"packDomain": "rack"}))
UPDATE: dict[str, tuple[tuple[Change, ...], list[tuple[str, str]]]] = {
    "nothing": ((), []),
    "G63 spec changed": ((put(f"{TC}.packDomain", "block"),), [("Invalid", TC)]),
    "G63 spec renamed": ((put(f"{TC}.clusterTopologyName", "u"),), [("Invalid", TC)]),
    "G63 spec level removed": ((drop(f"{TC}.packDomain"),), [("Invalid", TC)]),
    "G63 spec removed": ((NO_ROOT,), [("Invalid", TC), ("Required", TC)]),
    "G63 component changed": (
        (put(f"{DECODE}.topologyConstraint.packDomain", "host"),),
        [("Invalid", f"{C1}.topologyConstraint")],
    ),
    "G63 component removed": ((drop(f"{DECODE}.topologyConstraint"),), [("Invalid", f"{C1}.topologyConstraint")]),
    "G64 added": (
        (lambda data: data["spec"]["components"].append({"name": "New", "podTemplate": pod()}),),
        [("Forbidden", "spec.components")],
    ),
    "G64 removed": ((drop("spec.components.0"),), [("Forbidden", "spec.components")]),
    "G64 renamed": ((put(f"{DECODE}.name", "Prefill"),), [("Forbidden", "spec.components")]),
    "G64 single-node": ((drop(f"{DECODE}.multinode"),), [("Invalid", f"{C1}.multinode")]),
    "G64 multinode": ((put(f"{FRONTEND}.multinode", {}),), [("Invalid", f"{C0}.multinode")]),
    "replicas": ((put(f"{DECODE}.replicas", 9),), []),
    "image": ((put(f"{DECODE}.podTemplate", pod("registry.example/dynamo:1.5.0")),), []),
    "minAvailable": ((put(f"{DECODE}.minAvailable", 2),), [("Invalid", f"{C1}.minAvailable")]),
    "minAvailable written out": ((put(f"{DECODE}.minAvailable", 1),), []),
    "policy": ((put(POLICY, {"domain": "rack", "labelKey": "a"}),), [("Invalid", POLICY)]),
    "order of components": ((lambda data: data["spec"]["components"].reverse(),), []),
    "rules of creation hold": ((put(f"{DECODE}.minAvailable", 3),), [("Invalid", f"{C1}.minAvailable")] * 2),
}


@pytest.mark.parametrize(("changes", "expected"), UPDATE.values(), ids=UPDATE)
def test_updating_a_graph_names_every_fault_and_no_other(
    changes: tuple[Change, ...], expected: list[tuple[str, str]]
) -> None:
    faults = updated(BEFORE, changed(BEFORE, *changes))
    assert sorted(named(fault) for fault in faults) == sorted(expected)


def test_a_constraint_cannot_be_added_later() -> None:
    free = changed(beta(), *FREE)
    assert [named(fault) for fault in updated(free, beta())] == [
        ("Invalid", TC),
        ("Invalid", f"{C1}.topologyConstraint"),
    ]


def test_apiversion_and_target_of_an_override_cannot_change() -> None:
    old = changed(beta(), *FREE, put("spec.providerOverride", {**ROOT, "target": "PodCliqueSet"}))
    new = changed(old, put("spec.providerOverride.apiVersion", "grove.io/v1"), put("spec.providerOverride.target", "X"))
    assert sorted(named(fault) for fault in updated(old, new)) == [
        ("Invalid", "spec.providerOverride.apiVersion"),
        ("Invalid", "spec.providerOverride.target"),
        ("NotSupported", "spec.providerOverride.apiVersion"),
    ]


def test_both_versions_are_one_graph_on_update() -> None:
    assert updated(alpha(), beta()) == []
    assert updated(beta(), alpha()) == []


def test_topologies_are_looked_at_again_only_while_the_spec_never_changed() -> None:
    first = changed(beta(), put("metadata.generation", 1))
    labelled = changed(first, put("metadata.labels", {"a": "b"}))
    assert [named(fault) for fault in updated(first, labelled, {})] == [("Invalid", f"{TC}.clusterTopologyName")]
    assert updated(beta(), beta(), {}) == []
    assert updated(first, changed(first, put(f"{DECODE}.replicas", 3)), {}) == []


ALPHA = {
    "component broader than the graph": (
        put(f"{TC}.packDomain", "host"),
        (f"{C0}.topologyConstraint.packDomain", ("spec", "services", "Decode", "topologyConstraint", "packDomain")),
    ),
    "topology missing": (
        put(f"{TC}.topologyProfile", "u"),
        (f"{TC}.clusterTopologyName", ("spec", "topologyConstraint", "topologyProfile")),
    ),
    "no image": (
        put("spec.services.Frontend.extraPodSpec", {}),
        (f"{C1}.podTemplate.spec.containers[0].image", ("spec", "services", "Frontend", "image")),
    ),
    "name budget": (
        lambda data: data["spec"]["services"].__setitem__("f" * 42, data["spec"]["services"].pop("Frontend")),
        (f"{C1}.name", ("spec", "services", "f" * 42)),
    ),
}


@pytest.mark.parametrize(("change", "expected"), ALPHA.values(), ids=ALPHA)
def test_a_fault_in_an_older_file_names_todays_field_and_points_at_the_users_own(
    change: Change, expected: tuple[str, tuple[str | int, ...]]
) -> None:
    [fault] = created(changed(alpha(), change))
    assert (fault.field, fault.path) == expected


def test_the_topology_is_named_by_the_graph_and_not_by_a_service() -> None:
    [fault] = created(changed(alpha(), put("spec.services.Decode.topologyConstraint.topologyProfile", "t")))
    assert named(fault) == ("Forbidden", "spec.services.Decode.topologyConstraint.topologyProfile")
    assert "spec.topologyConstraint" in fault.hint


def test_a_name_that_is_a_key_is_marked_at_the_key() -> None:
    data = changed(alpha(), ALPHA["name budget"][0])
    [fault] = created(data)
    assert fault.place is not None
    assert fault.place.frame[-1][1].strip().startswith('"fff')


OFF = DynamoSettings(grove=False)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (put("spec.priorityClassName", "high"), [("Forbidden", "spec.priorityClassName")]),
        (put(f"{DECODE}.minAvailable", 1), [("Forbidden", f"{C1}.minAvailable")]),
        (put(POLICY, {"domain": "rack", "clusterTopologyName": "t"}), [("Forbidden", f"{POLICY}.clusterTopologyName")]),
        (put(f"{TC}.clusterTopologyName", "u"), []),
        (put(f"{DECODE}.name", "d" * 40), []),
    ],
)
def test_without_grove_what_needs_it_is_forbidden(change: Change, expected: list[tuple[str, str]]) -> None:
    data = changed(beta(), change)
    assert [named(fault) for fault in created(data, settings=OFF)] == expected
    data["metadata"]["annotations"] = {"nvidia.com/enable-grove": "false"}
    assert [named(fault) for fault in created(data)] == expected


def test_without_grove_an_override_is_forbidden_and_a_constraint_is_warned_about() -> None:
    data = changed(beta(), *FREE, put("spec.providerOverride", ROOT))
    assert [named(fault) for fault in created(data, settings=OFF)] == [("Forbidden", "spec.providerOverride")]
    assert "NoEffect" in [notice.code for notice in warnings(read(beta()), TOPOLOGIES, OFF)]
    assert [fault.path for fault in planning_faults(read(beta()), OFF)] == [
        ("metadata", "annotations", "nvidia.com/enable-grove")
    ]


@pytest.mark.parametrize(
    ("image", "versioned"),
    [
        ("registry.example/dynamo:1.4.0", True),
        ("registry.example:5000/dynamo:v1.4.0-rc.1", True),
        ("registry.example/dynamo:1.4.0@sha256:abc", True),
        ("registry.example:5000/dynamo", False),
        ("registry.example/dynamo:latest", False),
        ("registry.example/dynamo:1.4", False),
        ("registry.example/dynamo@sha256:abc", False),
    ],
)
def test_an_image_that_does_not_tell_its_version_is_warned_about_and_refused_when_strict(
    image: str, *, versioned: bool
) -> None:
    data = changed(beta(), put(f"{DECODE}.podTemplate", pod(image)))
    codes = [notice.code for notice in warnings(read(data), TOPOLOGIES)]
    assert created(data) == []
    assert ("RuntimeVersionUnknown" in codes) is not versioned
    strict = [named(fault) for fault in created(data, settings=DynamoSettings(strict=True))]
    assert strict == ([] if versioned else [("Required", f"{C1}.runtimeVersionOverride")])
    told = changed(data, put(f"{DECODE}.runtimeVersionOverride", "1.4.0"))
    assert created(told, settings=DynamoSettings(strict=True)) == []


def test_the_version_of_an_image_is_asked_for_when_it_changes() -> None:
    strict = DynamoSettings(strict=True)
    latest = changed(beta(), put(f"{DECODE}.podTemplate", pod("dynamo:latest")))
    assert updated(latest, latest, settings=strict) == []
    assert [named(fault) for fault in updated(beta(), latest, settings=strict)] == [
        ("Required", f"{C1}.runtimeVersionOverride")
    ]
    older = changed(alpha(), put("spec.services.Decode.extraPodSpec.mainContainer", {"image": "dynamo:latest"}))
    assert [named(fault) for fault in updated(alpha(), older, settings=strict)] == [
        ("Required", "spec.services[Decode].runtimeVersionOverride")
    ]


def test_unknown_topologies_are_said_and_skip_what_needs_them() -> None:
    data = changed(beta(), put(f"{TC}.clusterTopologyName", "nobody-knows"), put(f"{TC}.packDomain", "host"))
    assert created(data, None) == []
    assert [notice.code for notice in warnings(read(data), None)] == ["TopologyNotChecked"]
    assert warnings(read(changed(beta(), *FREE)), None) == []


def test_all_fields_without_effect_are_in_one_warning() -> None:
    data = changed(
        alpha(),
        put("spec.pvcs", [{"name": "models"}]),
        put("spec.services.Decode.autoscaling", {"enabled": True}),
        put("spec.services.Decode.scalingAdapter", {"enabled": True}),
        put("spec.services.Frontend.scalingAdapter", {"enabled": True}),
        put("spec.services.Frontend.ingress", {"enabled": False}),
    )
    [notice] = [each for each in warnings(read(data), TOPOLOGIES) if each.code == "FieldIgnored"]
    assert "pvcs, scalingAdapter, autoscaling;" in notice.message
    assert notice.path == ("spec", "pvcs")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (put(f"{DECODE}.experimental", {"gpuMemoryService": {}}), "gpuMemoryService"),
        (put(f"{DECODE}.experimental", {"failover": {"mode": "IntraPod"}}), "failover"),
        (put("spec.experimental", {"componentGroups": [{"name": "g"}]}), "componentGroups"),
        (put(f"{DECODE}.lpx", {}), "lpx"),
    ],
)
def test_what_would_change_the_placement_is_admitted_but_not_planned(change: Change, name: str) -> None:
    graph = read(changed(beta(), change))
    assert created(changed(beta(), change)) == []
    [fault] = planning_faults(graph)
    assert fault.message.startswith(f"{name} is not supported by a plan")
    assert fault.code is Reason.UNSUPPORTED
    assert "emove" not in fault.hint


def test_a_graph_without_any_replica_cannot_be_planned() -> None:
    data = changed(beta(), put(f"{DECODE}.replicas", 0), put(f"{FRONTEND}.replicas", 0))
    assert created(data) == []
    assert len(planning_faults(read(data), DEFAULTS)) == 1


def test_messages_say_what_is_known_and_what_was_meant() -> None:
    [fault] = created(changed(beta(), put(f"{TC}.packDomain", "blok")))
    assert fault.hint == 'Its levels are: zone, block, rack, host. Did you mean "block"?'
    [fault] = created(changed(beta(), put(f"{FRONTEND}.replica", 1)))
    assert fault.hint == 'Did you mean "replicas"?'
    [fault] = created(changed(alpha(), put("spec.topologyConstraint.clusterTopologyName", "t")))
    assert fault.hint == "In this version of the API it is called topologyProfile."
