"""The feasible nodes and requests of a pod spec, and the fields that cannot be planned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import Reason, field_path
from coterie.frontends.kubernetes.pod_spec import ignored_notice, read_pod
from coterie.gang.tree import Expression, Shape, Toleration
from coterie.topology.pod_affinity import AffinityTerm, HostPort, LabelRequirement, PodTraits

GI = 1 << 30
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def container(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def pod(*containers: Any, **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers or [container()]), **fields}


def sidecar(**requests: Any) -> Any:
    return container(requests, restartPolicy="Always")


COUNTED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nothing": (pod(), {}),
    "no resources at all": ({"containers": [{"name": "c"}]}, {}),
    "containers add up": (pod(container({"cpu": "500m"}), container({"cpu": 1})), {"cpu": 1500}),
    "a limit alone is a request": (pod(container(limits={"nvidia.com/gpu": 4})), {"nvidia.com/gpu": 4}),
    "a request wins over a limit": (
        pod(container({"cpu": 1}, {"cpu": 4, "memory": "1Gi"})),
        {"cpu": 1000, "memory": GI},
    ),
    "the hungriest init container counts": (
        pod(container({"cpu": 1}), initContainers=[container({"cpu": 3}), container({"cpu": 2})]),
        {"cpu": 3000},
    ),
    "a small init container does not": (
        pod(container({"cpu": 2}), initContainers=[container({"cpu": 1})]),
        {"cpu": 2000},
    ),
    "a sidecar runs along": (pod(container({"cpu": 1}), initContainers=[sidecar(cpu=1)]), {"cpu": 2000}),
    "a sidecar runs beside later init containers": (
        pod(container({"cpu": 1}), initContainers=[sidecar(cpu=1), container({"cpu": 3})]),
        {"cpu": 4000},
    ),
    "a sidecar does not run beside earlier ones": (
        pod(container({"cpu": 1}), initContainers=[container({"cpu": 3}), sidecar(cpu=1)]),
        {"cpu": 3000},
    ),
    "overhead comes on top": (pod(container({"memory": "1Gi"}), overhead={"memory": "1Gi"}), {"memory": 2 * GI}),
    "the pod's own requests replace the sum": (
        pod(container({"cpu": 1, "memory": "1Gi"}), resources={"requests": {"cpu": 4}}),
        {"cpu": 4000, "memory": GI},
    ),
    "the pod's own limits count where nothing else does": (
        pod(container({"cpu": 1}), resources={"limits": {"cpu": 4, "memory": "2Gi"}}),
        {"cpu": 1000, "memory": 2 * GI},
    ),
    "zeros are nothing": (pod(container({"cpu": 0, "nvidia.com/gpu": "0"})), {}),
}


@pytest.mark.parametrize(("spec", "expected"), COUNTED.values(), ids=COUNTED)
def test_a_pod_asks_for_what_kubernetes_counts(spec: dict[str, Any], expected: dict[str, int]) -> None:
    found = read_pod(spec)
    assert (dict(found.shape.requests), found.faults, found.ignored) == (expected, (), ())
    assert list(found.shape.requests) == sorted(found.shape.requests)


def test_selectors_affinity_and_tolerations_are_kept() -> None:
    terms = [
        {
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["1", "2"]},
                {"key": "b", "operator": "Exists"},
            ]
        },
        {},
        {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["8"]}]},
    ]
    found = read_pod(
        pod(
            nodeSelector={"z": "1", "a": "2"},
            affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
            tolerations=[
                {"operator": "Exists"},
                {"key": "k", "value": "v", "effect": "NoSchedule", "tolerationSeconds": 5},
            ],
        )
    )
    assert not found.faults
    assert found.shape == Shape(
        selector=(("a", "2"), ("z", "1")),
        tolerations=(Toleration(operator="Exists"), Toleration("k", "Equal", "v", "NoSchedule")),
        affinity=(
            (Expression("a", "In", ("1", "2")), Expression("b", "Exists")),
            (Expression("n", "Gt", ("8",)),),
        ),
    )


def node_affinity(*terms: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def expression(operator: str, *values: str) -> dict[str, Any]:
    return node_affinity({"matchExpressions": [{"key": "k", "operator": operator, "values": list(values)}]})


TERMS = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
HARD: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "nodeName": (pod(nodeName="n"), ("NotSupported", "nodeName")),
    "podAffinity": (
        pod(affinity={"podAffinity": {REQUIRED: [{}]}}),
        ("Required", f"affinity.podAffinity.{REQUIRED}[0].topologyKey"),
    ),
    "podAntiAffinity": (
        pod(
            affinity={
                "podAntiAffinity": {REQUIRED: [{"topologyKey": "k", "namespaceSelector": {"matchLabels": {"a": "b"}}}]}
            }
        ),
        ("NotSupported", f"affinity.podAntiAffinity.{REQUIRED}[0].namespaceSelector"),
    ),
    "pod selector": (
        pod(
            affinity={
                "podAntiAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "k",
                            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
                        }
                    ]
                }
            }
        ),
        ("Invalid", f"affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]"),
    ),
    "spread": (
        pod(topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]),
        ("NotSupported", "topologySpreadConstraints[0]"),
    ),
    "matchFields": (
        node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
        ("NotSupported", f"{TERMS}[0].matchFields"),
    ),
    "no terms": (node_affinity(), ("Required", TERMS)),
    "empty terms": (node_affinity({}, {"matchExpressions": []}), ("Required", TERMS)),
    "unknown operator": (expression("Has", "v"), ("Invalid", f"{TERMS}[0].matchExpressions[0]")),
    "In without values": (expression("In"), ("Invalid", f"{TERMS}[0].matchExpressions[0]")),
    "Exists with values": (expression("Exists", "v"), ("Invalid", f"{TERMS}[0].matchExpressions[0]")),
    "Gt without a number": (expression("Gt", "many"), ("Invalid", f"{TERMS}[0].matchExpressions[0]")),
    "toleration": (
        pod(tolerations=[{"key": "k", "operator": "Gt", "value": "5"}]),
        ("NotSupported", "tolerations[0].operator"),
    ),
    "no containers": ({"containers": []}, ("Required", "containers")),
    "half a GPU": (
        pod(container(limits={"nvidia.com/gpu": "500m"})),
        ("Invalid", "containers[0].resources.limits.nvidia.com/gpu"),
    ),
    "too much": (pod(container({"memory": "4E"})), ("Invalid", "")),
    "wrong type": (pod(nodeSelector=["a"]), ("Invalid", "nodeSelector")),
    "missing containers": ({}, ("Required", "containers")),
}


@pytest.mark.parametrize(("spec", "expected"), HARD.values(), ids=HARD)
def test_what_would_make_a_plan_wrong_is_refused_by_name(spec: dict[str, Any], expected: tuple[str, str]) -> None:
    prefix = ("spec", "podSpec")
    faults = read_pod(spec, prefix).faults
    found = [(str(each.type), field_path(each.path[2:])) for each in faults]
    assert found == [expected]
    assert all(each.path[:2] == prefix and each.message and each.place is None for each in faults)


@pytest.mark.parametrize("spec", [spec for spec, (type_, _) in HARD.values() if type_ == "NotSupported"])
def test_what_is_not_supported_is_not_called_invalid_and_not_to_be_removed(spec: dict[str, Any]) -> None:
    (fault,) = read_pod(spec).faults
    if "operator" in fault.path:
        return  # Kubernetes itself knows no such operator
    assert fault.code is Reason.UNSUPPORTED
    assert "emove" not in fault.hint


def test_host_ports_are_those_of_containers_that_run_on() -> None:
    listening = {"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "10.0.0.1"}
    beside = {**container(ports=[{"containerPort": 9, "hostPort": 9}]), "restartPolicy": "Always"}
    passing = container(ports=[{"containerPort": 7, "hostPort": 7}])
    found = read_pod(pod(container(ports=[listening, {"containerPort": 81}]), initContainers=[beside, passing]))
    assert set(found.neighbours.ports) == {HostPort(8080, "UDP", "10.0.0.1"), HostPort(9)}
    assert not found.faults


def test_on_the_network_of_the_host_every_port_is_one_of_the_node() -> None:
    found = read_pod(pod(container(ports=[{"containerPort": 80}]), hostNetwork=True), ("p",))
    assert found.neighbours.ports == {HostPort(80): ("p", "containers", 0, "ports", 0)}


def test_terms_are_read_with_selector_namespaces_and_keys() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [{"key": "c", "operator": "Exists"}],
        },
        "namespaces": ["x"],
        "matchLabelKeys": ["d"],
        "mismatchLabelKeys": ["e"],
    }
    everybody = {"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {}}
    nobody = {"topologyKey": "host"}
    found = read_pod(
        pod(affinity={"podAffinity": {REQUIRED: [term]}, "podAntiAffinity": {REQUIRED: [everybody, nobody]}})
    ).neighbours
    [near] = found.near
    conditions = (
        LabelRequirement("a", "In", ("1",)),
        LabelRequirement("b", "In", ("2",)),
        LabelRequirement("c", "Exists"),
    )
    assert near == AffinityTerm("zone", conditions, frozenset("x"), same=("d",), different=("e",))
    meant = near.of({"d": "4", "e": "5"}, "own")
    pods = [
        PodTraits(space, {"a": "1", "b": "2", "c": "", "d": d, "e": e}) for space in "xy" for d in "45" for e in "45"
    ]
    assert [(each.namespace, each.labels["d"], each.labels["e"]) for each in pods if meant.matches(each)] == [
        ("x", "4", "4")
    ]
    assert [[term.matches(PodTraits("any"))] for term in found.apart] == [[True], [False]]


def test_claims_are_read_by_template_or_by_name() -> None:
    claims = [{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimName": "c"}]
    found = read_pod(pod(resourceClaims=claims))
    assert [(each.name, each.template, each.existing) for each in found.claims] == [("a", "t", ""), ("b", "", "c")]
    assert not found.faults


def test_soft_wishes_are_one_warning() -> None:
    found = read_pod(
        pod(
            affinity={
                "nodeAffinity": {PREFERRED: [{"weight": 1}]},
                "podAffinity": {PREFERRED: [{"weight": 1}]},
                "podAntiAffinity": {PREFERRED: [{"weight": 1}]},
            },
            topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}],
            runtimeClassName="kata",
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "w", "ephemeral": {"x": 1}}],
            schedulingGates=[{"name": "g"}],
        ),
        ("p",),
    )
    (notice,) = ignored_notice(found.ignored)
    assert not found.faults
    assert notice.path == ("p", "affinity", "nodeAffinity", PREFERRED)
    for words in (
        *("preferred node affinity", "preferred pod affinity", "preferred pod anti-affinity"),
        *("topologySpreadConstraints", "runtimeClassName", "volumes (in 2 places)", "schedulingGates"),
    ):
        assert words in notice.message


def test_empty_wishes_are_none() -> None:
    empty = pod(
        affinity={"nodeAffinity": {}, "podAffinity": {REQUIRED: []}, "podAntiAffinity": None},
        topologySpreadConstraints=[],
        resourceClaims=[],
        tolerations=None,
        hostNetwork=True,
        nodeName="",
    )
    found = read_pod(empty)
    assert (found.shape, found.faults, found.ignored) == (Shape(), (), ())


FIELDS = (
    *("containers", "initContainers", "resources", "requests", "limits", "cpu", "overhead", "nodeSelector", "affinity"),
    *("nodeAffinity", "podAffinity", REQUIRED, PREFERRED, "nodeSelectorTerms", "matchExpressions", "key", "operator"),
    *("values", "tolerations", "ports", "hostPort", "name", "volumes", "topologySpreadConstraints", "restartPolicy"),
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["Always", "1Gi", "In", "9" * 40]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(FIELDS), values))
def test_any_mapping_is_read_or_refused(spec: dict[str, Any]) -> None:
    found = read_pod(spec, ("spec",))
    assert all(each.message and each.path[:1] == ("spec",) and each.type for each in found.faults)
    assert all(each.message for each in ignored_notice(found.ignored))
