"""Rules of PodCliqueSets beyond topology, immutable fields, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.document.schema import MOST_FAULTS
from coterie.errors import Reason
from coterie.frontends.grove.podcliqueset.queue import resolve_queue
from coterie.frontends.grove.podcliqueset.rules.admission import create_faults, update_faults, warnings
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from tests.frontends.grove.objects import (
    TOPOLOGIES,
    Change,
    Manifest,
    assigned,
    changed,
    clique,
    constrained,
    group,
    podcliqueset,
    read,
    shown,
    standard,
)

T = "spec.template"
C0, C1 = f"{T}.cliques[0]", f"{T}.cliques[1]"
G0 = f"{T}.podCliqueScalingGroups[0]"
EXPLICIT = "CliqueStartupTypeExplicit"
TEMPLATE = {"name": "c", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}


def shared(**fields: object) -> dict[str, object]:
    return {"name": "c", "scope": "AllReplicas"} | fields


def starting(**after: list[str]) -> Manifest:
    """Return a set with an explicit order of starts."""
    cliques = [clique(name, startsAfter=names) for name, names in after.items()]
    return podcliqueset(*cliques, cliqueStartupType=EXPLICIT)


GENERAL: dict[str, tuple[Manifest, list[tuple[str, str]]]] = {
    "good": (standard(), []),
    "no cliques": (podcliqueset(cliques=[]), [("Required", f"{T}.cliques")]),
    "negative replicas": (changed(standard(), assigned("spec.replicas", -1)), [("Invalid", "spec.replicas")]),
    "no replicas": (changed(standard(), assigned("spec.replicas", 0)), []),
    "unknown strategy": (
        changed(standard(), assigned("spec.updateStrategy", {"type": "Recreate"})),
        [("NotSupported", "spec.updateStrategy.type")],
    ),
    "unknown start-up": (podcliqueset(cliqueStartupType="InOrder"), [("NotSupported", f"{T}.cliqueStartupType")]),
    "no delay": (podcliqueset(terminationDelay="0s"), [("Invalid", f"{T}.terminationDelay")]),
    "bad clique name": (podcliqueset(clique("A_1")), [("Invalid", f"{C0}.name")]),
    "empty clique name": (podcliqueset(clique("")), [("Required", f"{C0}.name")]),
    "clique twice": (
        podcliqueset(clique("a"), clique("a", roleName="b")),
        [("Duplicate", f"{C1}.name")],
    ),
    "role twice": (podcliqueset(clique("a"), clique("b", roleName="a")), [("Duplicate", f"{C1}.spec.roleName")]),
    "negative pods": (podcliqueset(clique("a", replicas=-2)), [("Invalid", f"{C0}.spec.replicas")]),
    "nothing available": (podcliqueset(clique("a", minAvailable=0)), [("Invalid", f"{C0}.spec.minAvailable")]),
    "too much available": (podcliqueset(clique("a", minAvailable=3)), [("Invalid", f"{C0}.spec.minAvailable")]),
    "bad label": (
        changed(podcliqueset(clique("a")), assigned("spec.template.cliques.0.labels", {"a b": "c", "d": "e f"})),
        [("Invalid", f"{C0}.labels"), ("Invalid", f"{C0}.labels")],
    ),
    "bad annotation": (
        changed(podcliqueset(clique("a")), assigned("spec.template.cliques.0.annotations", {"a b": "c d"})),
        [("Invalid", f"{C0}.annotations")],
    ),
    "scaled below what is needed": (
        podcliqueset(clique("a", autoScalingConfig={"minReplicas": 1, "maxReplicas": 5})),
        [("Invalid", f"{C0}.spec.autoScalingConfig.minReplicas")],
    ),
    "scaled below what stands": (
        podcliqueset(clique("a", autoScalingConfig={"maxReplicas": 1})),
        [("Invalid", f"{C0}.spec.autoScalingConfig.maxReplicas")],
    ),
    "bounds crossed": (
        podcliqueset(clique("a", autoScalingConfig={"minReplicas": 9, "maxReplicas": 5})),
        [("Invalid", f"{C0}.spec.autoScalingConfig.maxReplicas")],
    ),
    "scaled in a group": (
        podcliqueset(clique("a", autoScalingConfig={"maxReplicas": 5}), groups=[group("g", "a")]),
        [("Invalid", f"{C0}.spec.autoScalingConfig")],
    ),
    "two schedulers": (
        changed(standard(), assigned("spec.template.cliques.1.spec.podSpec.schedulerName", "volcano")),
        [("Invalid", f"{C1}.spec.podSpec.schedulerName")],
    ),
    "no scheduler means the default one": (
        changed(standard(), assigned("spec.template.cliques.1.spec.podSpec.schedulerName", "")),
        [],
    ),
    "unknown scheduler": (
        changed(
            podcliqueset(clique("a")), assigned("spec.template.cliques.0.spec.podSpec.schedulerName", "kai-shceduler")
        ),
        [("Invalid", f"{C0}.spec.podSpec.schedulerName")],
    ),
    "bound pods": (
        changed(
            podcliqueset(clique("a")),
            assigned("spec.template.cliques.0.spec.podSpec.nodeName", "n1"),
            assigned("spec.template.cliques.0.spec.podSpec.topologySpreadConstraints", [{"maxSkew": 1}]),
        ),
        [
            ("Invalid", f"{C0}.spec.podSpec.topologySpreadConstraints"),
            ("Invalid", f"{C0}.spec.podSpec.nodeName"),
        ],
    ),
    "starts after": (starting(a=[], b=["a"], c=["a", "b"]), []),
    "starts after itself": (starting(a=["a"]), [("Invalid", f"{C0}.spec.startsAfter[0]")]),
    "starts after nobody": (
        starting(a=["x", ""]),
        [("Invalid", f"{C0}.spec.startsAfter[0]"), ("Required", f"{C0}.spec.startsAfter[1]")],
    ),
    "starts twice after one": (starting(a=[], b=["a", "a"]), [("Duplicate", f"{C1}.spec.startsAfter[1]")]),
    "starts in a cycle": (starting(a=[], b=["a", "d"], c=["b"], d=["c"]), [("Invalid", f"{T}.cliques")]),
    "a circle that does not count": (
        podcliqueset(clique("a", startsAfter=["b"]), clique("b", startsAfter=["a"])),
        [],
    ),
    "bad group name": (podcliqueset(clique("a"), groups=[group("G", "a")]), [("Invalid", f"{G0}.name")]),
    "group twice": (
        podcliqueset(clique("a"), clique("b"), groups=[group("g", "a"), group("g", "b")]),
        [("Duplicate", f"{T}.podCliqueScalingGroups[1].name")],
    ),
    "clique in two groups": (
        podcliqueset(clique("a"), groups=[group("g", "a"), group("h", "a")]),
        [("Duplicate", f"{T}.podCliqueScalingGroups[1].cliqueNames[0]")],
    ),
    "unknown member": (podcliqueset(clique("a"), groups=[group("g", "b")]), [("Invalid", f"{G0}.cliqueNames[0]")]),
    "an empty group": (
        podcliqueset(clique("a"), groups=[group("g", "a", replicas=0)]),
        [("Invalid", f"{G0}.replicas"), ("Invalid", f"{G0}.minAvailable")],
    ),
    "a group that needs nothing": (
        podcliqueset(clique("a"), groups=[group("g", "a", minAvailable=0)]),
        [("Invalid", f"{G0}.minAvailable")],
    ),
    "a group that needs too much": (
        podcliqueset(clique("a"), groups=[group("g", "a", replicas=2, minAvailable=3)]),
        [("Invalid", f"{G0}.minAvailable")],
    ),
    "a group scaled too low": (
        podcliqueset(
            clique("a"),
            groups=[group("g", "a", replicas=3, minAvailable=2, scaleConfig={"minReplicas": 1, "maxReplicas": 4})],
        ),
        [("Invalid", f"{G0}.scaleConfig.minReplicas")],
    ),
    "long names": (
        podcliqueset(clique("a" * 43), clique("b" * 42)),
        [("Invalid", f"{C0}.name"), ("Invalid", "metadata.name")],
    ),
    "long names in a group": (
        podcliqueset(clique("a" * 30), groups=[group("g" * 20, "a" * 30)]),
        [("Invalid", f"{G0}.cliqueNames[0]"), ("Invalid", f"{G0}.name"), ("Invalid", "metadata.name")],
    ),
    "shared claims": (
        podcliqueset(
            clique("a"),
            groups=[group("g", "a", resourceSharing=[shared(filter={"childCliqueNames": ["a"]})])],
            resourceClaimTemplates=[TEMPLATE],
            resourceSharing=[shared(filter={"childScalingGroupNames": ["g"]})],
        ),
        [],
    ),
    "claim templates": (
        podcliqueset(resourceClaimTemplates=[TEMPLATE, TEMPLATE, {"name": "", "templateSpec": {}}]),
        [
            ("Required", f"{T}.resourceClaimTemplates[2].name"),
            ("Required", f"{T}.resourceClaimTemplates[2].templateSpec.spec.devices.requests"),
            ("Duplicate", f"{T}.resourceClaimTemplates[1].name"),
        ],
    ),
    "wrong sharing": (
        podcliqueset(
            resourceClaimTemplates=[TEMPLATE],
            resourceSharing=[
                shared(namespace="x", scope="All"),
                shared(filter={}),
                shared(name="d", filter={"childCliqueNames": ["x"], "childScalingGroupNames": ["y"]}),
            ],
        ),
        [
            ("Invalid", f"{T}.resourceSharing[0].namespace"),
            ("NotSupported", f"{T}.resourceSharing[0].scope"),
            ("Duplicate", f"{T}.resourceSharing[1].name"),
            ("Required", f"{T}.resourceSharing[1].filter"),
            ("NotFound", f"{T}.resourceSharing[2].filter.childCliqueNames[0]"),
            ("NotFound", f"{T}.resourceSharing[2].filter.childScalingGroupNames[0]"),
        ],
    ),
}


@pytest.mark.parametrize(("manifest", "expected"), GENERAL.values(), ids=GENERAL)
def test_a_new_set_keeps_the_general_rules(manifest: Manifest, expected: list[tuple[str, str]]) -> None:
    faults = create_faults(read(manifest), TOPOLOGIES)
    assert shown(faults) == expected
    assert all(each.place and each.place.line and each.message and each.hint for each in faults)


def test_a_circle_is_shown_as_one_walks_it() -> None:
    (fault,) = create_faults(read(starting(a=[], b=["a", "d"], c=["b"], d=["c"])), TOPOLOGIES)
    assert "b → d → c → b" in fault.message


def test_faults_about_a_parent_point_at_the_text_that_is_wrong() -> None:
    manifest = changed(
        standard(),
        constrained("set", {"topologyName": "t", "pack": {"required": "rack"}}),
        constrained("a", {"pack": {"required": "zone"}}),
    )
    (fault,) = create_faults(read(manifest), TOPOLOGIES)
    assert fault.field == f"{T}.topologyConstraint"
    assert fault.place
    assert '"required": "zone"' in fault.place.frame[-1][1]


def test_an_unknown_domain_says_which_there_are() -> None:
    manifest = changed(standard(), constrained("set", {"topologyName": "t", "pack": {"required": "rak"}}))
    (fault,) = create_faults(read(manifest), TOPOLOGIES)
    assert (fault.code, fault.hint) == (Reason.UNKNOWN_LEVEL, 'Did you mean "rack"?')


def test_very_many_faults_are_not_all_listed() -> None:
    faults = create_faults(read(podcliqueset(*(clique("A" * (1 + index)) for index in range(300)))), TOPOLOGIES)
    assert len(faults) == MOST_FAULTS + 1


def test_without_topologies_nothing_is_judged_by_them() -> None:
    manifest = changed(standard(), constrained("set", {"topologyName": "x", "pack": {"required": "y"}}))
    assert not create_faults(read(manifest), None)
    assert [each.code for each in warnings(read(manifest), None)] == ["TopologyNotChecked"]


UPDATES: dict[str, tuple[tuple[Change, ...], list[tuple[str, str]]]] = {
    "nothing": ((), []),
    "replicas of the set": ((assigned("spec.replicas", 7),), []),
    "replicas of a clique": ((assigned("spec.template.cliques.0.spec.replicas", 7),), []),
    "replicas of a group": ((assigned("spec.template.podCliqueScalingGroups.0.replicas", 7),), []),
    "image": ((assigned("spec.template.cliques.0.spec.podSpec.containers.0.image", "x"),), []),
    "priority": ((assigned("spec.template.priorityClassName", "high"),), []),
    "delay": ((assigned("spec.template.terminationDelay", "1h"),), []),
    "fewer replicas than are needed": (
        (assigned("spec.template.cliques.0.spec.replicas", 1),),
        [("Invalid", f"{C0}.spec.minAvailable")],
    ),
    "another name": ((assigned("metadata.name", "other"),), [("Invalid", "metadata.name")]),
    "another namespace": ((assigned("metadata.namespace", "other"),), [("Invalid", "metadata.namespace")]),
    "role": ((assigned("spec.template.cliques.0.spec.roleName", "x"),), [("Invalid", f"{C0}.spec.roleName")]),
    "what is needed": (
        (assigned("spec.template.cliques.0.spec.minAvailable", 1),),
        [("Invalid", f"{C0}.spec.minAvailable")],
    ),
    "order of starts": (
        (assigned("spec.template.cliques.0.spec.startsAfter", ["b"]),),
        [("Invalid", f"{C0}.spec.startsAfter")],
    ),
    "start-up": (
        (assigned("spec.template.cliqueStartupType", EXPLICIT),),
        [("Invalid", f"{T}.cliqueStartupType")],
    ),
    "scheduler": (
        tuple(assigned(f"spec.template.cliques.{index}.spec.podSpec.schedulerName", "volcano") for index in range(4)),
        [("Invalid", f"{T}.cliques[{index}].spec.podSpec.schedulerName") for index in range(4)],
    ),
    "a clique renamed": (
        (assigned("spec.template.cliques.0.name", "x"),),
        [("Forbidden", f"{C0}.name"), ("Forbidden", f"{T}.cliques")],
    ),
    "a clique removed": (
        (lambda manifest: manifest["spec"]["template"]["cliques"].pop(0),),
        [("Forbidden", f"{T}.cliques")],
    ),
    "a group removed": (
        (lambda manifest: manifest["spec"]["template"].pop("podCliqueScalingGroups"),),
        [("Forbidden", f"{T}.podCliqueScalingGroups")],
    ),
    "a group renamed": (
        (assigned("spec.template.podCliqueScalingGroups.0.name", "x"),),
        [("Forbidden", f"{G0}.name"), ("Forbidden", f"{T}.podCliqueScalingGroups")],
    ),
    "members": (
        (assigned("spec.template.podCliqueScalingGroups.0.cliqueNames", ["work", "lead"]),),
        [("Invalid", f"{G0}.cliqueNames")],
    ),
    "what is needed of a group": (
        (assigned("spec.template.podCliqueScalingGroups.0.minAvailable", 2),),
        [("Invalid", f"{G0}.minAvailable")],
    ),
    "claims": (
        (
            assigned("spec.template.resourceClaimTemplates", [TEMPLATE]),
            assigned("spec.template.resourceSharing", [shared()]),
            assigned("spec.template.cliques.1.resourceSharing", [shared()]),
            assigned("spec.template.podCliqueScalingGroups.0.resourceSharing", [shared()]),
        ),
        [
            ("Invalid", f"{C1}.resourceSharing"),
            ("Invalid", f"{G0}.resourceSharing"),
            ("Invalid", f"{T}.resourceClaimTemplates"),
            ("Invalid", f"{T}.resourceSharing"),
        ],
    ),
    "order of cliques, which does not count": (
        (lambda manifest: manifest["spec"]["template"]["cliques"].reverse(),),
        [],
    ),
    "pods bound later": ((assigned("spec.template.cliques.0.spec.podSpec.nodeName", "n1"),), []),
    "wrong and changed": (
        (assigned("spec.replicas", -1), assigned("spec.template.cliques.0.spec.roleName", "x")),
        [("Invalid", "spec.replicas")],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), UPDATES.values(), ids=UPDATES)
def test_an_update_keeps_what_is_fixed(changes: tuple[Change, ...], expected: list[tuple[str, str]]) -> None:
    faults = update_faults(read(standard()), read(changed(standard(), *changes)), TOPOLOGIES)
    assert shown(faults) == expected
    assert all(each.place and each.place.line and each.message and each.hint for each in faults)


def test_cliques_that_start_in_order_cannot_be_moved() -> None:
    old = changed(standard(), assigned("spec.template.cliqueStartupType", "CliqueStartupTypeInOrder"))
    new = changed(old, lambda manifest: manifest["spec"]["template"]["cliques"].reverse())
    assert shown(update_faults(read(old), read(new), TOPOLOGIES)) == [("Invalid", f"{T}.cliques")] * 4


def test_a_default_that_was_filled_in_stays_though_replicas_grow() -> None:
    old, new = podcliqueset(clique("a", replicas=2)), podcliqueset(clique("a", replicas=5))
    assert not update_faults(read(old), read(new), TOPOLOGIES)
    written = podcliqueset(clique("a", replicas=5, minAvailable=5))
    assert shown(update_faults(read(old), read(written), TOPOLOGIES)) == [("Invalid", f"{C0}.spec.minAvailable")]


def scheduled(name: str) -> tuple[Change, ...]:
    return tuple(assigned(f"spec.template.cliques.{index}.spec.podSpec.schedulerName", name) for index in range(4))


RACK: dict[str, Any] = {"topologyName": "t", "pack": {"required": "rack"}}
HEAD = GroveSettings(form=Form.GROVE_HEAD)
WARNINGS: dict[str, tuple[tuple[Change, ...], GroveSettings, list[str]]] = {
    "nothing": ((constrained("set", RACK),), GroveSettings(), []),
    "older form": ((constrained("set", {"topologyName": "t", "packDomain": "rack"}),), GroveSettings(), ["Deprecated"]),
    "older form, refused": ((constrained("set", {"topologyName": "t", "packDomain": "rack"}),), HEAD, []),
    "name for others": (
        (constrained("set", {"topologyName": "t"}), constrained("a", {"pack": {"required": "rack"}})),
        GroveSettings(),
        ["Deprecated"],
    ),
    "no queue": ((assigned("metadata.labels", {}),), GroveSettings(), ["NoQueue"]),
    "no queue, refused": ((assigned("metadata.labels", {}),), HEAD, []),
    "a scheduler without topology": (
        (*scheduled("default-scheduler"), constrained("set", RACK)),
        GroveSettings(),
        ["OtherScheduler"],
    ),
    "a scheduler without topology, and no need of it": (scheduled("default-scheduler"), GroveSettings(), []),
    "restarts": (
        (assigned("spec.template.cliques.0.spec.podSpec.restartPolicy", "Never"),),
        GroveSettings(),
        ["FieldIgnored"],
    ),
    "an order that does not count": (
        (assigned("spec.template.cliques.0.spec.startsAfter", ["b"]),),
        GroveSettings(),
        ["FieldIgnored"],
    ),
}


@pytest.mark.parametrize(("changes", "settings", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_what_is_allowed_and_odd_is_warned_of(
    changes: tuple[Change, ...], settings: GroveSettings, expected: list[str]
) -> None:
    found = warnings(read(changed(standard(), *changes)), TOPOLOGIES, settings)
    assert [each.code for each in found] == expected
    assert all(each.place and each.place.line for each in found)


def test_the_queue_is_that_of_the_set_or_the_only_one_of_its_cliques() -> None:
    none = changed(standard(), assigned("metadata.labels", {}))
    one = changed(none, assigned("spec.template.cliques.1.annotations", {"kai.scheduler/queue": "q"}))
    two = changed(one, assigned("spec.template.cliques.0.labels", {"kai.scheduler/queue": "r"}))
    assert [resolve_queue(read(each)) for each in (standard(), none, one, two)] == ["inference", "", "q", ""]
