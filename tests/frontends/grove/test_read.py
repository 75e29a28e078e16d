"""PodCliqueSets as they are read: defaults, wrong types, unknown fields, and fields that are passed through."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.errors import Fault, FieldError, SpecErrors, field_path
from coterie.frontends.grove.podcliqueset.model import Effective, PodCliqueSet
from coterie.frontends.grove.podcliqueset.pod_shapes import placeable
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules.admission import create_faults, update_faults, warnings
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from coterie.frontends.kubernetes.objects import read_resources, resource_of
from tests.frontends.grove.objects import (
    TOPOLOGIES,
    assigned,
    changed,
    clique,
    constrained,
    group,
    podcliqueset,
    read,
    reading_faults,
    shown,
    standard,
)
from tests.frontends.mutations import junk, mutated
from tests.random_examples import examples

CLIQUE = "spec.template.cliques[0]"


def smallest() -> dict[str, Any]:
    """Return a set that leaves out all that can be left out."""
    pod = {"containers": [{"name": "main"}]}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "set"},
        "spec": {"template": {"cliques": [{"name": "a", "spec": {"roleName": "a", "podSpec": pod}}]}},
    }


def test_what_is_left_out_gets_the_defaults_of_the_api() -> None:
    pcs = read(changed(smallest(), assigned("spec.template.podCliqueScalingGroups", [group("g", "a")])))
    assert (pcs.namespace, pcs.replicas, pcs.startup) == ("default", 0, "CliqueStartupTypeAnyOrder")
    assert (pcs.update_strategy, pcs.termination_delay_ns) == ("RollingRecreate", 4 * 3600 * 10**9)
    assert (pcs.publish_not_ready, pcs.priority_class, pcs.constraint) == (True, "", None)
    assert (pcs.cliques[0].replicas, pcs.cliques[0].min_available) == (1, 1)
    assert (pcs.groups[0].replicas, pcs.groups[0].min_available) == (1, 1)


def test_a_clique_needs_all_of_its_pods_unless_it_says_otherwise() -> None:
    pcs = read(podcliqueset(clique("a", replicas=5), clique("b", replicas=5, minAvailable=2)))
    assert [(each.replicas, each.min_available) for each in pcs.cliques] == [(5, 5), (5, 2)]


def test_replicas_written_as_zero_become_one_and_take_min_available_with_them() -> None:
    pcs = read(podcliqueset(clique("a", replicas=0)))
    assert (pcs.cliques[0].replicas, pcs.cliques[0].min_available) == (1, 0)
    assert shown(create_faults(pcs, TOPOLOGIES)) == [("Invalid", f"{CLIQUE}.spec.minAvailable")]
    assert not create_faults(read(podcliqueset(clique("a", replicas=0, minAvailable=1))), TOPOLOGIES)


def test_bounds_of_an_autoscaler_default_to_replicas() -> None:
    pcs = read(podcliqueset(clique("a", replicas=3, autoScalingConfig={"maxReplicas": 9})))
    scale = pcs.cliques[0].scale
    assert scale is not None
    assert (scale.least, scale.most) == (3, 9)


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("4h", 4 * 3600 * 10**9),
        ("1h30m", 5400 * 10**9),
        ("1.5h", 5400 * 10**9),
        ("300ms", 3 * 10**8),
        ("-5m", -300 * 10**9),
        ("0", 0),
        (".5s", 5 * 10**8),
    ],
)
def test_times_are_read_as_go_writes_them(written: str, nanoseconds: int) -> None:
    assert read(podcliqueset(terminationDelay=written)).termination_delay_ns == nanoseconds


@pytest.mark.parametrize("written", ["", "4", "1d", "h", 5, True, [], "9999999999999h", "1h " * 90])
def test_other_times_are_refused(written: object) -> None:
    (fault,) = reading_faults(podcliqueset(terminationDelay=written))
    assert (fault.type, field_path(fault.path)) == (FieldError.INVALID, "spec.template.terminationDelay")


def test_null_is_the_same_as_nothing() -> None:
    names = ("topologyConstraint", "podCliqueScalingGroups", "terminationDelay", "resourceSharing")
    nothing: dict[str, Any] = dict.fromkeys(names)
    manifest = changed(podcliqueset(**nothing), assigned("spec.updateStrategy", None))
    assert read(manifest) == read(podcliqueset())


def test_a_constraint_takes_its_name_from_above_and_its_domains_from_nowhere() -> None:
    pcs = read(
        changed(
            standard(),
            constrained("set", {"topologyName": "t"}),
            constrained("shard", {"topologyName": "u", "packDomain": "rack"}),
            constrained("lead", {"pack": {"preferred": "host"}}),
            constrained("a", {"pack": {"required": "rack", "preferred": "host"}}),
        )
    )
    assert pcs.effective() is None
    assert pcs.effective(pcs.groups[0]) == Effective("u", "rack")
    assert pcs.effective(pcs.by_name["lead"]) == Effective("u", "", "host")
    assert pcs.effective(pcs.by_name["a"]) == Effective("t", "rack", "host")
    assert pcs.effective(pcs.by_name["work"]) is None


def test_groups_and_cliques_know_each_other() -> None:
    pcs = read(standard())
    assert [each.name for each in pcs.standalone] == ["a", "b"]
    assert [each.name for each in pcs.members(pcs.groups[0])] == ["lead", "work"]
    assert pcs.group_of["work"] is pcs.groups[0]


WRONG = {
    "a list for a mapping": ("spec.template", [], "Invalid", "spec.template"),
    "a mapping for a list": ("spec.template.cliques", {"a": 1}, "Invalid", "spec.template.cliques"),
    "text for a number": ("spec.replicas", "3", "Invalid", "spec.replicas"),
    "a fraction for a number": ("spec.replicas", 1.5, "Invalid", "spec.replicas"),
    "truth for a number": ("spec.replicas", True, "Invalid", "spec.replicas"),
    "a number beyond int32": ("spec.replicas", 1 << 31, "Invalid", "spec.replicas"),
    "a number of many digits": ("spec.replicas", 10**300, "Invalid", "spec.replicas"),
    "a number for a label": ("metadata.labels.team", 7, "Invalid", "metadata.labels.team"),
    "a list for metadata": ("metadata.annotations", ["x"], "Invalid", "metadata.annotations"),
    "no clique name": ("spec.template.cliques.0.name", None, "Required", f"{CLIQUE}.name"),
    "no pod spec": ("spec.template.cliques.0.spec.podSpec", None, "Required", f"{CLIQUE}.spec.podSpec"),
    "no containers": (
        "spec.template.cliques.0.spec.podSpec.containers",
        None,
        "Required",
        f"{CLIQUE}.spec.podSpec.containers",
    ),
    "a text pod spec": ("spec.template.cliques.0.spec.podSpec", "x", "Invalid", f"{CLIQUE}.spec.podSpec"),
    "a bad domain": (
        "spec.template.topologyConstraint",
        {"packDomain": "Rack"},
        "Invalid",
        "spec.template.topologyConstraint.packDomain",
    ),
    "an empty domain": (
        "spec.template.topologyConstraint",
        {"pack": {"required": ""}},
        "Invalid",
        "spec.template.topologyConstraint.pack.required",
    ),
    "a text constraint": (
        "spec.template.topologyConstraint",
        "rack",
        "Invalid",
        "spec.template.topologyConstraint",
    ),
    "a bad quantity": (
        "spec.template.cliques.0.spec.podSpec.containers.0.resources",
        {"requests": {"cpu": "lots"}},
        "Invalid",
        f"{CLIQUE}.spec.podSpec.containers[0].resources.requests.cpu",
    ),
    "a bare fraction": (
        "spec.template.cliques.0.spec.podSpec.containers.0.resources",
        {"requests": {"cpu": 0.5}},
        "Invalid",
        f"{CLIQUE}.spec.podSpec.containers[0].resources.requests.cpu",
    ),
    "a negative quantity": (
        "spec.template.cliques.0.spec.podSpec.overhead",
        {"memory": "-1Gi"},
        "Invalid",
        f"{CLIQUE}.spec.podSpec.overhead.memory",
    ),
}


@pytest.mark.parametrize(("path", "value", "kind", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_type_is_named_where_it_stands(path: str, value: object, kind: str, field: str) -> None:
    faults = reading_faults(changed(podcliqueset(), assigned(path, value)))
    assert shown(faults) == [(kind, field)]
    assert faults[0].place
    assert faults[0].place.line


UNKNOWN = {
    "minAvailible": ("spec.template.cliques.0.spec.minAvailible", 'Did you mean "minAvailable"?'),
    "required outside pack": ("spec.template.topologyConstraint", "required belongs to pack: {required: DOMAIN, pre"),
    "replicas in a clique": ("spec.template.cliques.0.replicas", "replicas belongs to the spec of a clique"),
    "cliques beside template": ("spec.cliques", "cliques belongs to spec.template."),
    "old list name": ("spec.template.podCliqueScalingGroupConfigs", 'Did you mean "podCliqueScalingGroups"?'),
    "schedulerName of a clique": ("spec.template.cliques.0.spec.schedulerName", "schedulerName belongs to the pods"),
    "top level": ("sepc", 'Did you mean "spec"?'),
}


@pytest.mark.parametrize(("path", "hint"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_field_is_refused_with_a_suggestion(path: str, hint: str) -> None:
    value = {"required": "rack"} if path.endswith("topologyConstraint") else 1
    (fault,) = reading_faults(changed(podcliqueset(), assigned(path, value)))
    assert fault.message.startswith("unknown field")
    assert fault.hint.startswith(hint)
    assert fault.type is FieldError.INVALID


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    manifest = changed(
        podcliqueset(), assigned("spec.replicas", "x"), assigned("spec.template.cliques.1.spec.replicas", "y")
    )
    assert [field for _, field in shown(reading_faults(manifest))] == [
        "spec.replicas",
        "spec.template.cliques[1].spec.replicas",
    ]


def test_fields_of_a_pod_spec_that_nobody_looks_at_are_carried_through() -> None:
    extra = {"shareProcessNamespace": True, "futureField": {"deep": [1, None, {"x": "y"}]}}
    manifest = podcliqueset(clique("a"))
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"] |= extra
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["env"] = [
        {"name": "A", "value": "1"}
    ]
    written = manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    assert read(manifest).cliques[0].pod_spec == written


def test_a_pod_spec_of_a_megabyte_is_read_in_time() -> None:
    manifest = podcliqueset(clique("a"))
    containers = manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"]
    containers[0]["env"] = [{"name": f"V{index}", "value": "x" * 180} for index in range(5000)]
    assert len(json.dumps(manifest)) > 1 << 20
    started = time.process_time()
    pcs = read(manifest)
    assert not create_faults(pcs, TOPOLOGIES)
    assert placeable(pcs).shapes["a"].requests == ()
    assert time.process_time() - started < 20


def test_an_object_that_came_as_data_is_read_too() -> None:
    pcs = read_podcliqueset(resource_of(standard()))
    assert pcs == read(standard())
    with pytest.raises(SpecErrors) as refused:
        read_podcliqueset(resource_of(changed(standard(), assigned("spec.replicas", "x"))))
    assert shown(refused.value.faults) == [("Invalid", "spec.replicas")]


def rich() -> dict[str, Any]:
    """Return a set in which almost every field is written."""
    manifest = changed(
        standard(),
        constrained("set", {"topologyName": "t", "pack": {"required": "zone", "preferred": "rack"}}),
        constrained("shard", {"packDomain": "rack"}),
        constrained("lead", {"topologyName": "t", "pack": {"required": "host"}}),
        assigned("metadata.annotations", {"grove.io/mnnvl-group": "fabric"}),
        assigned("spec.updateStrategy", {"type": "OnDelete"}),
        assigned("spec.template.cliqueStartupType", "CliqueStartupTypeExplicit"),
        assigned("spec.template.terminationDelay", "30m"),
        assigned("spec.template.headlessServiceConfig", {"publishNotReadyAddresses": False}),
        assigned("spec.template.priorityClassName", "high"),
        assigned("spec.template.resourceClaimTemplates", [{"name": "c", "templateSpec": {"spec": {"devices": {}}}}]),
        assigned(
            "spec.template.resourceSharing",
            [{"name": "c", "scope": "AllReplicas", "filter": {"childScalingGroupNames": ["shard"]}}],
        ),
        assigned("spec.template.cliques.1.spec.startsAfter", ["a"]),
        assigned("spec.template.cliques.0.spec.autoScalingConfig", {"minReplicas": 2, "maxReplicas": 9, "metrics": []}),
        assigned("spec.template.podCliqueScalingGroups.0.scaleConfig", {"maxReplicas": 9}),
        assigned("spec.template.podCliqueScalingGroups.0.resourceSharing", [{"name": "c", "scope": "PerReplica"}]),
    )
    pod = manifest["spec"]["template"]["cliques"][3]["spec"]["podSpec"]
    pod |= {
        "nodeSelector": {"gpu": "gb200"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
        "overhead": {"memory": "64Mi"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                }
            },
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
        },
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    }
    return manifest


def judged(pcs: PodCliqueSet, old: PodCliqueSet) -> None:
    """Call every rule there is, and see that all that is said has a place."""
    for form in Form:
        chosen = GroveSettings(form=form)
        for topologies in (TOPOLOGIES, {}, None):
            found = [*create_faults(pcs, topologies, chosen), *update_faults(old, pcs, topologies, chosen)]
            assert all(fault.place and fault.message and fault.type for fault in found)
            assert all(notice.place for notice in warnings(pcs, topologies, chosen))
            assert all(notice.place for notice in warnings(pcs, topologies, chosen, old))
    made = placeable(pcs)
    assert all(fault.place for fault in made.faults)
    assert all(notice.place for notice in made.notices)


def understood(manifest: dict[str, Any]) -> tuple[list[PodCliqueSet], list[Fault]]:
    """Return the sets of a document, or all that is wrong with it."""
    try:
        bundle = read_resources(json.dumps(manifest, indent=1).encode(), "set.yaml")
        return [read_podcliqueset(each) for each in bundle.of("PodCliqueSet")], []
    except SpecErrors as error:
        return [], list(error.faults)


def test_a_set_with_every_field_is_read() -> None:
    judged(read(rich()), read(standard()))


VALUES = junk("a", "shard", "rack", "zone", "AllReplicas", "0-300")
FIELDS = ["name", "replicas", "pack", "filter", "x"]


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_set_is_judged_or_refused(data: st.DataObject) -> None:
    manifest = mutated(data, rich(), FIELDS, VALUES)
    sets, faults = understood(manifest)
    assert all(fault.place and fault.message for fault in faults)
    for pcs in sets:
        judged(pcs, read(rich()))
