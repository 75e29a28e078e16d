"""The planning view of a valid PodCliqueSet."""

from __future__ import annotations

from coterie.frontends.grove.podcliqueset.pod_shapes import placeable
from coterie.frontends.grove.podcliqueset.rules.admission import create_faults
from tests.frontends.grove.objects import (
    TOPOLOGIES,
    assigned,
    changed,
    clique,
    group,
    podcliqueset,
    read,
    shown,
    standard,
)

TEMPLATE = {"name": "c", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}


def test_a_plain_set_is_placed_as_it_is() -> None:
    found = placeable(read(standard()))
    assert found.shapes["work"].requests == (("nvidia.com/gpu", 4),)
    assert (found.faults, found.notices) == ((), ())


def test_shared_devices_are_allowed_but_cannot_be_planned() -> None:
    share = [{"name": "c", "scope": "PerReplica"}]
    manifest = podcliqueset(
        clique("a") | {"resourceSharing": share},
        groups=[group("g", "a", resourceSharing=share)],
        resourceClaimTemplates=[TEMPLATE],
        resourceSharing=share,
    )
    assert not create_faults(read(manifest), TOPOLOGIES)
    assert shown(placeable(read(manifest)).faults) == [
        ("NotSupported", "spec.template.resourceSharing[0]"),
        ("NotSupported", "spec.template.cliques[0].resourceSharing[0]"),
        ("NotSupported", "spec.template.podCliqueScalingGroups[0].resourceSharing[0]"),
    ]


def test_faults_of_pod_specs_are_found_in_every_clique() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "g"}]
    manifest = changed(
        podcliqueset(),
        assigned("spec.template.cliques.0.spec.podSpec.resourceClaims", claims),
        assigned("spec.template.cliques.1.spec.podSpec.resourceClaims", claims),
    )
    found = placeable(read(manifest)).faults
    assert [field for _, field in shown(found)] == [
        f"spec.template.cliques[{index}].spec.podSpec.resourceClaims[0]" for index in range(2)
    ]
    assert all(each.place and each.place.line for each in found)


def test_all_that_a_plan_does_not_act_on_is_one_warning() -> None:
    manifest = changed(
        podcliqueset(
            clique("a", autoScalingConfig={"maxReplicas": 5}),
            clique("b", autoScalingConfig={"maxReplicas": 5}, startsAfter=["a"]),
            clique("c"),
            groups=[group("g", "c", scaleConfig={"maxReplicas": 5})],
            cliqueStartupType="CliqueStartupTypeExplicit",
            terminationDelay="1h",
            headlessServiceConfig={"publishNotReadyAddresses": False},
            priorityClassName="high",
            resourceClaimTemplates=[TEMPLATE],
        ),
        assigned("spec.updateStrategy", {"type": "OnDelete"}),
        assigned("spec.template.cliques.0.spec.podSpec.runtimeClassName", "kata"),
    )
    (notice,) = placeable(read(manifest)).notices
    assert notice.code == "FieldIgnored"
    assert notice.place
    assert notice.place.line
    for name in (
        *("autoScalingConfig (in 2 places)", "scaleConfig", "cliqueStartupType", "startsAfter", "updateStrategy"),
        *("terminationDelay", "headlessServiceConfig", "priorityClassName", "resourceClaimTemplates"),
        "runtimeClassName",
    ):
        assert name in notice.message


def test_defaults_that_are_written_out_are_not_warned_of() -> None:
    manifest = changed(
        podcliqueset(
            cliqueStartupType="CliqueStartupTypeAnyOrder",
            terminationDelay="4h",
            headlessServiceConfig={"publishNotReadyAddresses": True},
        ),
        assigned("spec.updateStrategy", {"type": "RollingRecreate"}),
    )
    assert placeable(read(manifest)).notices == ()
