"""Answers of the webhook: the cases of `coterie validate`, in the words of an API server, and never a crash."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.frontends.admission import KnownTopologies, TargetCluster
from coterie.operator.webhook.review import InvalidReviewError, answer_to
from tests.cli.commands.test_validate_changes import SITES, UPDATES
from tests.cli.sample_files import packed, topology
from tests.frontends.grove.objects import LEVELS, Manifest

KNOWN = KnownTopologies({"t": LEVELS}, told=True)
CAUSES = {
    "FieldValueInvalid": "Invalid",
    "FieldValueRequired": "Required",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate",
    "FieldValueNotFound": "NotFound",
    "FieldValueNotSupported": "NotSupported",
}
# An API server compares objects of one name and namespace, and sends no file.
ONLY_FILES = {"another namespace is another object", "an old file that is no list of objects"}


def review(new: Any, old: Any = None, **more: Any) -> dict[str, Any]:
    kind = {"kind": new.get("kind", ""), "group": "grove.io"} if isinstance(new, dict) else {}
    operation = "UPDATE" if old is not None else "CREATE"
    request = {"uid": "1", "operation": operation, "kind": kind, "object": new, "oldObject": old, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def answered(asked: Any, site: TargetCluster | None = None) -> dict[str, Any]:
    found: dict[str, Any] = answer_to(asked, KNOWN, site or TargetCluster())["response"]
    return found


def faults(response: dict[str, Any]) -> list[tuple[str, str]]:
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    return [(CAUSES[each["reason"]], each["field"]) for each in causes]


def warned(response: dict[str, Any]) -> list[str]:
    return [each.partition(":")[0] for each in response.get("warnings", [])]


def site_of(words: str) -> TargetCluster:
    given_words = words.split()
    off = {word for before, word in pairwise(given_words) if before == "--off"}
    return TargetCluster(strict="--strict" in given_words, off=frozenset(off))


@pytest.mark.parametrize("name", [name for name in UPDATES if name not in ONLY_FILES])
def test_updates_are_judged_as_coterie_validate_judges_them(name: str) -> None:
    old, new, expected, warnings = UPDATES[name]
    response = answered(review(new, old))

    assert (sorted(faults(response)), warned(response)) == (sorted(expected), warnings)
    assert response["allowed"] == (not expected)


@pytest.mark.parametrize("name", SITES)
def test_creations_are_judged_as_coterie_validate_judges_them(name: str) -> None:
    new, words, expected, warnings = SITES[name]
    response = answered(review(new), site_of(words))

    assert (sorted(faults(response)), warned(response)) == (sorted(expected), warnings)
    assert response["allowed"] == (not expected)


def test_a_refusal_is_the_status_of_an_api_server() -> None:
    status = answered(review(packed("rak"), name="set"))["status"]

    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["details"]["causes"][0]["field"] == "spec.template.topologyConstraint.pack.required"
    assert "rak" in status["message"]


def test_switched_off_topology_refuses_new_constraints_and_lets_old_objects_be_edited() -> None:
    off = TargetCluster(off=frozenset({"topology"}))

    assert not answered(review(packed()), off)["allowed"]
    assert answered(
        review(
            {**packed(), "metadata": {**packed()["metadata"], "labels": {**packed()["metadata"]["labels"], "a": "b"}}},
            packed(),
        ),
        off,
    )["allowed"]


def test_a_deleted_object_and_a_generated_name_are_let_through() -> None:
    leaving = {**packed("rak"), "metadata": {**packed()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert answered(review(leaving, leaving))["allowed"]
    unnamed: Manifest = topology()
    unnamed["metadata"] = {"generateName": "hall-"}
    assert answered(review(unnamed))["allowed"]
    assert answered({**review(None), "request": {"uid": "1", "operation": "DELETE"}})["allowed"]


@pytest.mark.parametrize(
    "body", [None, [], "text", {}, {"request": None}, {"request": {"uid": ""}}, {"request": {"uid": 3}}]
)
def test_a_body_that_is_no_review_is_named_as_such(body: Any) -> None:
    with pytest.raises(InvalidReviewError):
        answer_to(body, KNOWN, TargetCluster())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["spec", "levels", "metadata", "name", "kind", "template"]), inner, max_size=4
            )
        ),
        max_leaves=20,
    ),
    st.sampled_from(["ClusterTopology", "PodCliqueSet", "DynamoGraphDeployment", "Pod"]),
)
def test_whatever_is_in_an_object_there_is_an_answer(spec: Any, kind: str) -> None:
    for new in (spec, {"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}):
        response = answered(review(new))
        assert isinstance(response["allowed"], bool)
        assert response["allowed"] or response["status"]["code"] == 422
