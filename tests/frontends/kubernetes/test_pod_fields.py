"""Unknown fields of pod specs are warned of, with the probable spelling, and never refused."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import field_path
from coterie.frontends.grove.podcliqueset.rules.admission import create_faults, warnings
from coterie.frontends.kubernetes.pod_fields import BELOW, CONTAINER, POD, unknown_fields
from tests.frontends.grove.objects import assigned, changed, podcliqueset, read


def told(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the field and the message of every warning about a pod spec."""
    return [(field_path(notice.path), notice.message) for notice in unknown_fields([(spec, ())])]


SLIPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "of the pod": ({"nodeSelectr": {}}, "nodeSelectr", "nodeSelector"),
    "in its case": ({"nodeselector": {}}, "nodeselector", "nodeSelector"),
    "of a container": ({"containers": [{}, {"comand": []}]}, "containers[1].comand", "command"),
    "of an init container": ({"initContainers": [{"restartpolicy": "Always"}]}, "", "restartPolicy"),
    "of what a container asks for": (
        {"containers": [{"resources": {"limit": {}}}]},
        "containers[0].resources.limit",
        "limits",
    ),
    "of a toleration": ({"tolerations": [{"opertor": "Exists"}]}, "tolerations[0].opertor", "operator"),
    "of an affinity": ({"affinity": {"nodeAfinity": {}}}, "affinity.nodeAfinity", "nodeAffinity"),
    "of a node affinity": (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoreDuringExecution": {}}}},
        "",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ),
}


@pytest.mark.parametrize(("spec", "where", "meant"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_told_with_what_was_meant(spec: dict[str, Any], where: str, meant: str) -> None:
    [(field, message)] = told(spec)

    assert field.startswith(where)
    assert message.endswith(f'Did you mean "{meant}"?')


def test_every_field_that_is_known_passes() -> None:
    spec: dict[str, Any] = dict.fromkeys(POD)
    for steps, _, fields in BELOW:
        if len(steps) == 1:
            spec[steps[0]] = dict.fromkeys(fields)
    spec["containers"] = spec["initContainers"] = [dict.fromkeys(CONTAINER)]

    assert told(spec) == []


def test_a_name_like_no_other_may_be_a_newer_one_and_comes_last() -> None:
    assert told({"zzz": 1, "volums": []}) == [
        ("volums", '"volums" is not a known field of a pod spec. Did you mean "volumes"?'),
        ("zzz", '"zzz" is not a known field of a pod spec. A newer Kubernetes may have it.'),
    ]


@pytest.mark.parametrize("spec", [{"containers": 1}, {"containers": [1]}, {"affinity": [1]}, {"tolerations": {"a": 1}}])
def test_what_has_another_shape_is_left_to_the_rules(spec: dict[str, Any]) -> None:
    assert told(spec) == []


def test_of_very_many_some_are_named_and_the_rest_counted() -> None:
    found = told({f"x{number}": 0 for number in range(2000)})

    assert len(found) == 11
    assert found[-1][1] == "1990 more fields of pod specs are not known"


def test_a_set_with_a_slip_keeps_every_rule_and_is_warned_of_once_at_its_line() -> None:
    path = "spec.template.cliques.{}.spec.podSpec.nodeSelectr"
    pcs = read(changed(podcliqueset(), *(assigned(path.format(index), {"a": "b"}) for index in range(2))))

    [notice] = [each for each in warnings(pcs, None) if each.code == "UnknownField"]

    assert create_faults(pcs, None) == []
    assert field_path(notice.path) == "spec.template.cliques[0].spec.podSpec.nodeSelectr"
    assert notice.place
    assert notice.place.line
