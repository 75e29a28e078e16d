"""A submission can be bound to an earlier plan."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.submission.preview import plan_id
from tests.service.api.requests import body, ended, error_of, post
from tests.service.running_service import single

AT = "/api/v1/workflows"
ASKED = Submission(b"x", pool="main")
ANSWER: dict[str, Any] = {
    "verdict": "placed",
    "groups": [{"name": "g", "verdict": "placed", "assignments": [{"task": "t", "node": "n1"}]}],
}


def test_a_submission_as_planned_is_taken_and_any_other_stores_nothing(client: TestClient, service: Service) -> None:
    wanted = body(single("x", "true"))
    dry = client.post(AT, json=wanted, params={"dry_run": "true"}).json()["id"]
    planned = client.post("/api/v1/plan", json=wanted).json()["id"]
    assert dry == planned
    assert re.fullmatch("[0-9a-f]{8}", dry)
    post(client, "other", "sleep 600")
    service.wait("other-1", lambda view: view["status"] == "RUNNING", timeout_s=60)

    stale = client.post(AT, json=wanted, params={"plan": dry})
    assert stale.status_code == 409
    error = error_of(stale)
    now = error["details"]["plan"]
    assert (error["code"], error["details"]["verdict"]) == ("PlanStale", "placed")
    assert dry in error["message"]
    assert now in error["hint"]
    assert now != dry
    assert [row["id"] for row in client.get(AT).json()["items"]] == ["other-1"]

    taken = client.post(AT, json=wanted, params={"plan": now}, headers={"idempotency-key": "k"})
    assert (taken.status_code, taken.json()["id"]) == (201, "x-1")
    service.wait("x-1", lambda view: view["started"], timeout_s=60)
    again = client.post(AT, json=wanted, params={"plan": dry}, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["id"]) == (200, "x-1")
    client.post(f"{AT}/other-1/cancel", json={"force": True})
    ended(service, "other-1")


def test_a_dry_run_is_held_to_no_plan(client: TestClient) -> None:
    answer = client.post(AT, json=body(single("x", "true")), params={"dry_run": "true", "plan": "0123abcd"})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("asked", "answer", "same"),
    [
        (ASKED, ANSWER, True),
        (replace(ASKED, file="y.yaml", priority="HIGH", labels={"a": "b"}, client_key="k", owner="o"), ANSWER, True),
        (replace(ASKED, source=b"y"), ANSWER, False),
        (replace(ASKED, sets=("a=1",)), ANSWER, False),
        (replace(ASKED, set_strings=("a=1",)), ANSWER, False),
        (replace(ASKED, local_files={"f": b""}), ANSWER, False),
        (ASKED, {**ANSWER, "verdict": "waiting"}, False),
        (ASKED, {**ANSWER, "stats": {"elapsed_ms": 3.0}}, True),
        (ASKED, {**ANSWER, "groups": [{**ANSWER["groups"][0], "verdict": "waiting"}]}, False),
        (ASKED, {**ANSWER, "groups": [{**ANSWER["groups"][0], "assignments": []}]}, False),
    ],
)
def test_an_id_stands_for_what_was_asked_and_answered(asked: Submission, answer: dict[str, Any], same: bool) -> None:  # noqa: FBT001 - a case
    assert (plan_id(asked, "main", answer) == plan_id(ASKED, "main", ANSWER)) is same
    assert plan_id(asked, "other", answer) != plan_id(asked, "main", answer)
