"""Apply and delete: idempotent, without touching others' fields or objects."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from coterie.errors import FieldError, NotFound, SpecErrors, UsageError
from coterie.kube.apply import apply, apply_all
from coterie.kube.delete import delete
from coterie.kube.errors import ApiForbidden, MissingKind, ObjectConflict
from coterie.kube.kinds import POD, POD_GROUP, kind_of
from tests.kube.faulty_transport import Script, answer, api, status, thing

GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.run.ai/v2alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "team"},
    "spec": {"minMember": 2},
}
TAKEN = status(
    409,
    "Conflict",
    'Apply failed with 1 conflict: conflict with "kubectl" using v1: .spec.minMember',
    details={
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl" using v1', "field": ".spec.queue"},
            {"reason": "FieldManagerConflict", "message": 'conflict with "argo" using v1', "field": ".spec.minMember"},
            {"reason": "FieldManagerConflict", "message": 'conflict with "argo" using v1', "field": ".spec.other"},
        ]
    },
)


def mine(*, marked: bool = True) -> httpx2.Response:
    found = thing("g")
    found["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "coterie" if marked else "helm"}
    return answer(found)


def test_an_object_is_applied_by_one_manager() -> None:
    script = Script([answer(thing("g", 7), 201)])

    applied = apply(api(script), GROUP)

    (request,) = script.asked
    assert (request.method, request.url.path) == (
        "PATCH",
        "/apis/scheduling.run.ai/v2alpha2/namespaces/team/podgroups/g",
    )
    assert script.params == [{"fieldManager": "coterie", "force": "false"}]
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    assert json.loads(request.content) == GROUP
    assert (applied.created, applied.meta.resource_version) == (True, "7")


def test_the_status_is_a_resource_of_its_own() -> None:
    script = Script([answer(thing("g"))])

    apply(api(script), GROUP, subresource="status", dry_run=True)

    assert script.asked[0].url.path.endswith("/podgroups/g/status")
    assert script.params[0]["dryRun"] == "All"


def test_a_conflict_names_the_other_managers() -> None:
    script = Script([TAKEN])

    with pytest.raises(ObjectConflict, match=r'managed by "kubectl", "argo": \.spec\.queue, ') as caught:
        apply(api(script), GROUP)

    assert caught.value.managers == ("kubectl", "argo")
    assert caught.value.fields == (".spec.queue", ".spec.minMember", ".spec.other")
    assert len(script.asked) == 1


def test_fields_of_our_own_object_are_taken_back() -> None:
    script = Script([TAKEN, mine(), answer(thing("g"))])

    apply(api(script), GROUP, reclaim=True)

    assert [request.method for request in script.asked] == ["PATCH", "GET", "PATCH"]
    assert [params.get("force") for params in script.params] == ["false", None, "true"]


@pytest.mark.parametrize(
    "found", [mine(marked=False), answer(thing("g")), status(404, details={"name": "g"})], ids=["other", "bare", "gone"]
)
def test_fields_of_another_s_object_are_left_alone(found: httpx2.Response) -> None:
    script = Script([TAKEN, found])

    with pytest.raises(ObjectConflict):
        apply(api(script), GROUP, reclaim=True)

    assert len(script.asked) == 2


def test_fields_that_the_api_refuses_are_faults_with_their_paths() -> None:
    refused = status(
        422,
        "Invalid",
        'PodGroup "g" is invalid',
        details={
            "causes": [
                {"reason": "FieldValueInvalid", "message": "Invalid value: -1", "field": "spec.minMember"},
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.queue"},
                {"reason": "SomethingNew", "message": "odd", "field": "<nil>"},
            ]
        },
    )

    with pytest.raises(SpecErrors) as caught:
        apply(api(Script([refused])), GROUP)

    assert [(fault.field, fault.type) for fault in caught.value.faults] == [
        ("spec.minMember", FieldError.INVALID),
        ("spec.queue", FieldError.REQUIRED),
        ("", FieldError.INVALID),
    ]
    assert caught.value.faults[0].message == 'PodGroup "team/g": spec.minMember: Invalid value: -1'


def test_a_refusal_without_causes_is_one_fault() -> None:
    with pytest.raises(SpecErrors, match="strict decoding error"):
        apply(api(Script([status(400, "BadRequest", "strict decoding error: unknown field")])), GROUP)


def test_an_absent_namespace_and_an_absent_kind_are_told_apart() -> None:
    with pytest.raises(MissingKind):
        apply(api(Script([status(404)])), GROUP)
    with pytest.raises(NotFound, match='no namespace "team"'):
        apply(api(Script([status(404, details={"kind": "namespaces", "name": "team"})])), GROUP)


def test_order_is_kept_and_the_first_failure_ends_it() -> None:
    script = Script([answer(thing("a")), status(403), answer(thing("c"))])
    manifests = [{**GROUP, "metadata": {"name": name}} for name in "abc"]
    with pytest.raises(ApiForbidden):
        list(apply_all(api(script), manifests, namespace="team"))

    assert [request.url.path.rpartition("/")[2] for request in script.asked] == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "Pod"}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}, 'not "team"'),
        ({"apiVersion": "v9", "kind": "Pod", "metadata": {"name": "p"}}, "is not known"),
        ({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "p"}}, "is not known"),
        ({"apiVersion": "a/b/c", "kind": "Widget", "metadata": {"name": "p"}}, "is not known"),
    ],
    ids=str,
)
def test_nothing_is_sent_while_any_manifest_is_wrong(wrong: dict[str, Any], said: str) -> None:
    script = Script([answer(thing("g"))])

    with pytest.raises(UsageError, match=said):
        list(apply_all(api(script), [GROUP, wrong], namespace="team"))

    assert script.asked == []


def test_kubernetes_own_kinds_are_known() -> None:
    assert kind_of({"apiVersion": "apps/v1", "kind": "Deployment"}).plural == "deployments"
    assert kind_of({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}).namespaced is False
    assert kind_of(GROUP) == POD_GROUP


def test_exactly_one_object_is_deleted() -> None:
    script = Script([answer({})])

    assert delete(api(script), POD, "p", namespace="n", uid="u1", grace_s=0)

    (request,) = script.asked
    assert (request.method, request.url.path) == ("DELETE", "/api/v1/namespaces/n/pods/p")
    assert json.loads(request.content) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 0,
    }


def test_what_is_gone_or_replaced_needs_no_deletion() -> None:
    replaced = status(409, "Conflict", "the UID in the precondition (u1) does not match the UID in record (u2)")

    assert not delete(api(Script([status(404, details={"name": "p"})])), POD, "p", namespace="n")
    assert not delete(api(Script([replaced])), POD, "p", namespace="n", uid="u1")
    with pytest.raises(ObjectConflict):
        delete(api(Script([replaced])), POD, "p", namespace="n")
    with pytest.raises(MissingKind):
        delete(api(Script([status(404)])), POD_GROUP, "p", namespace="n")
