"""The routes of workflows: submission, lists, details, cancellation, retries and faults."""

from __future__ import annotations

import base64
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from coterie.service.service import Service
from tests.service.api.requests import body, ended, error_of, post, team, waiting
from tests.service.running_service import single, task, workflow

AT = "/api/v1/workflows"
RACK = "[{key: rack}]"


def test_a_workflow_is_submitted_shown_and_listed(client: TestClient, service: Service) -> None:
    answer = client.post(AT, json=body(single("hello", "echo hello"), labels={"team": "blue"}))
    assert (answer.status_code, answer.headers["location"]) == (201, f"{AT}/hello-1")
    assert answer.json()["created"] is True
    ended(service, "hello-1")
    view = client.get(f"{AT}/hello-1").json()
    assert (view["status"], view["owner"], view["labels"]) == ("COMPLETED", "local", {"team": "blue"})
    assert [row["id"] for row in client.get(AT).json()["items"]] == ["hello-1"]


def test_a_workflow_may_be_sent_as_the_file_it_is(client: TestClient) -> None:
    source = single("plain", "echo {{ word }}").source
    answer = client.post(
        AT,
        content=source,
        headers={"content-type": "application/yaml"},
        params={"file": "plain.yaml", "pool": "main", "set": "word=hi", "priority": "HIGH", "label": "a=b"},
    )
    assert answer.status_code == 201, answer.text
    view = answer.json()
    assert (view["created_from"], view["priority"], view["labels"]) == ("plain.yaml", "HIGH", {"a": "b"})
    spec = client.get(f"{AT}/plain-1/spec").json()
    assert (spec["source"], spec["sets"]) == (source.decode(), ["word=hi"])


PLAINLY_WRONG: tuple[object, ...] = (
    {"source": 3},
    {"source": "workflow: {}", "sources": ""},
    {"source": "workflow: {}", "label": ["x"]},
    {"source": "workflow: {}", "files": {"a": "?"}},
    {"source": "workflow: {}", "pool": "nowhere"},
    [],
)


@pytest.mark.parametrize("wrong", PLAINLY_WRONG)
def test_a_plain_submission_gets_the_same_answer_as_any_other(client: TestClient, wrong: object) -> None:
    plain = client.post(AT, json=wrong)
    usual = client.post(f"{AT}?dry_run=false", json=wrong)
    assert plain.status_code == usual.status_code >= 400
    assert plain.json() == usual.json()


def test_the_short_way_of_plain_submissions_knows_keys_force_and_content_types(client: TestClient) -> None:
    sent, keyed = body(single("plain", "true")), {"Idempotency-Key": "k"}
    assert [client.post(AT, json=sent, headers=keyed).status_code for _ in range(2)] == [201, 200]
    assert client.post(AT, json=sent, headers={"Idempotency-Key": "k" * 201}).status_code == 422
    assert client.post(AT, json=sent, headers={"Idempotency-Key": ""}).status_code == 422
    assert client.post(f"{AT}?forced=true", json=sent).status_code == 422
    assert client.post(AT, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    huge = body(single("huge", "true", gpu=1000))
    refused = client.post(AT, json=huge)
    assert (refused.status_code, error_of(refused)["code"]) == (409, "NeverFits")
    assert client.post(f"{AT}?force=true", json=huge).status_code == 201


def test_a_query_beside_a_json_body_is_refused(client: TestClient) -> None:
    answer = client.post(AT, json=body(single("twice", "true")), params={"pool": "main"})
    assert answer.status_code == 400
    assert "pool" in error_of(answer)["message"]


def test_faults_of_a_file_are_all_told_with_their_places(client: TestClient) -> None:
    text = single("bad", "true").source.decode().replace("gpu: 4", "gpus: 4").replace("image: any", "imagine: any")
    answer = client.post(AT, json={"source": text, "file": "bad.yaml"})
    assert answer.status_code == 422
    error = error_of(answer)
    assert len(error["errors"]) >= 2
    assert error["location"]["file"] == "bad.yaml"
    assert error["location"]["line"] > 1
    assert all(fault["line"] for fault in error["errors"])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 422),
        ({"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}, 422),
        ({"content": b'{"source": "\\ud800"}', "headers": {"content-type": "application/json"}}, 422),
        ({"json": {"source": "x", "sauce": "y"}}, 422),
        ({"json": {"source": "x", "files": {"a": "?"}}}, 400),
        ({"json": {"source": "x", "priority": "SOON"}}, 422),
        ({"content": b"x", "headers": {"content-type": "text/html"}}, 415),
        ({"content": b"x"}, 415),
        ({"content": b"\xff", "headers": {"content-type": "application/yaml"}}, 400),
        ({"content": b"", "headers": {"content-type": "application/yaml"}}, 422),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_in_the_one_shape(
    client: TestClient, sent: dict[str, object], status: int
) -> None:
    answer = client.post(AT, **sent)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text
    error_of(answer)


def test_the_same_key_gives_the_same_workflow_and_never_another(client: TestClient) -> None:
    headers = {"idempotency-key": "k1"}
    first = client.post(AT, json=body(single("once", "true")), headers=headers)
    again = client.post(AT, json=body(single("once", "true")), headers=headers)
    other = client.post(AT, json=body(single("once", "false")), headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert (again.json()["id"], again.json()["created"]) == (first.json()["id"], False)
    assert error_of(other)["code"] == "Conflict"


def test_files_come_with_the_request(client: TestClient, service: Service) -> None:
    text = workflow(
        "carry", {"g": [task("t", "cat /tmp/given.txt", "files: [{path: /tmp/given.txt, localpath: data.txt}]")]}
    )
    files = {"data.txt": base64.b64encode(b"carried").decode()}
    answer = client.post(AT, json=body(text, files=files))
    assert answer.status_code == 201, answer.text
    assert client.get(f"{AT}/carry-1/spec").json()["files"] == {"data.txt": 7}
    assert ended(service, "carry-1")["finished"]


def test_a_dry_run_and_a_plan_say_the_same_and_store_nothing(client: TestClient) -> None:
    wanted = body(workflow("big", {"g": team(5)}, topology=RACK))
    dry = client.post(AT, json=wanted, params={"dry_run": "true"})
    plan = client.post("/api/v1/plan", json=wanted)
    assert (dry.status_code, plan.status_code) == (200, 200)
    assert dry.json()["groups"] == plan.json()["groups"]
    assert plan.json()["verdict"] == "impossible"
    assert client.get(AT).json()["items"] == []


def test_why_names_the_reason_and_who_is_in_the_way(client: TestClient, service: Service) -> None:
    holding = workflow("holder", {"g": team(8, "sleep 600")})
    client.post(AT, json=body(holding))
    service.wait("holder-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    post(client, "later")
    waiting(service, "later-1")
    why = client.get(f"{AT}/later-1/why").json()
    assert why["groups"][0]["refusal"]["reason"] == "NoCapacity"
    assert why["groups"][0]["refusal"]["holders"][0]["owner"].endswith("holder-1")
    assert client.get(AT, params={"status": ["WAITING", "PENDING"]}).json()["items"][0]["waiting"]["reason"]
    assert client.get(f"{AT}/later-1/why", params={"group": "h"}).status_code == 404
    client.post(f"{AT}/holder-1/cancel", json={"force": True})
    assert ended(service, "later-1")["status"] == "COMPLETED"


def test_the_placement_is_audited(client: TestClient, service: Service) -> None:
    text = workflow("kept", {"g": team(4)}, topology=RACK)
    client.post(AT, json=body(text))
    ended(service, "kept-1")
    audit = client.get(f"{AT}/kept-1/placement").json()
    assert audit["summary"] == {"held": 1, "missed": 0, "violated": 0, "unobservable": 0}
    assert len(audit["groups"][0]["tasks"]) == 4


def test_a_workflow_is_canceled_any_number_of_times(client: TestClient, service: Service) -> None:
    post(client, "long", "sleep 600")
    service.wait("long-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    for _ in range(3):
        assert client.post(f"{AT}/long-1/cancel", json={"message": "enough"}).status_code == 202
    assert ended(service, "long-1")["status"] == "FAILED_CANCELED"
    again = client.post(f"{AT}/long-1/cancel", json={"force": True})
    assert (again.status_code, again.json()["status"]) == (202, "FAILED_CANCELED")
    assert client.post("/api/workflow/long-1/cancel").json() == {"name": "long-1", "status": "FAILED_CANCELED"}


@pytest.mark.parametrize(("script", "status"), [("true", "COMPLETED"), ("exit 3", "FAILED")])
def test_what_ended_otherwise_is_not_canceled(client: TestClient, service: Service, script: str, status: str) -> None:
    post(client, "short", script)
    ended(service, "short-1")
    answer = client.post(f"{AT}/short-1/cancel")
    assert answer.status_code == 409
    assert error_of(answer)["message"].endswith(f"has already ended as {status}")
    assert error_of(answer)["hint"]


def test_a_workflow_whose_pool_is_gone_is_not_retried(client: TestClient, service: Service) -> None:
    client.put("/api/v1/pools/away", json={"backend": "lab"})
    post(client, "fails", "exit 3", pool="away")
    ended(service, "fails-1")
    assert client.delete("/api/v1/pools/away").status_code == 204
    answer = client.post(f"{AT}/fails-1/retry")
    assert answer.status_code == 409
    assert error_of(answer)["message"] == 'workflow "fails-1" cannot be retried: its pool "away" is gone'
    assert error_of(answer)["hint"].endswith("Pools are: main.")


def test_every_event_of_a_workflow_names_its_pool(client: TestClient, service: Service) -> None:
    post(client, "one")
    ended(service, "one-1")
    found = client.get(f"{AT}/one-1/events").json()["items"]
    assert {"Submitted", "Status", "Finished"} <= {event["kind"] for event in found}
    assert {event["pool"] for event in found} == {"main"}


def test_a_failed_workflow_is_retried_and_then_deleted(client: TestClient, service: Service) -> None:
    post(client, "fails", "exit 3")
    ended(service, "fails-1")
    assert client.post(f"{AT}/fails-1/retry", json={"task": "nobody"}).status_code == 404
    answer = client.post(f"{AT}/fails-1/retry", json={"task": "t"})
    assert answer.status_code == 202, answer.text
    service.wait("fails-1", lambda view: view["finished"] and view["groups"][0]["tasks"][0]["past"], timeout_s=60)
    assert client.delete(f"{AT}/fails-1").status_code == 204
    assert client.get(f"{AT}/fails-1").status_code == 404


def test_pages_hold_every_workflow_once(client: TestClient) -> None:
    wanted = [post(client, name) for name in ("a", "b", "a", "c", "a")]
    seen: list[str] = []
    after = None
    while True:
        page = client.get(AT, params={"limit": 2, **({"after": after} if after is not None else {})}).json()
        seen += [row["id"] for row in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == wanted[::-1]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"name": "al"}, 1),
        ({"name": "x"}, 0),
        ({"pool": "main"}, 2),
        ({"pool": "other"}, 0),
        ({"pool": ["other", "main"]}, 2),
        ({"owner": "local"}, 2),
        ({"owner": ["nobody", "local"]}, 2),
        ({"label": ["team=blue"]}, 1),
        ({"label": ["team=blue", "team2=x"]}, 0),
        ({"submitted_after": "2001-01-01T00:00:00Z"}, 2),
        ({"submitted_after": "2001-01-01"}, 2),
        ({"submitted_before": "978307200"}, 0),
        ({"status": ["FAILED"]}, 0),
    ],
)
def test_filters_choose(client: TestClient, query: dict[str, str | list[str]], count: int) -> None:
    post(client, "alpha", labels={"team": "blue"})
    post(client, "beta")
    answer = client.get(AT, params=query)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["items"]) == count


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"status": "LOST"}, 400),
        ({"label": "nothing"}, 400),
        ({"limit": "0"}, 422),
        ({"limit": "1001"}, 422),
        ({"after": "99999999999999999999"}, 422),
        ({"submitted_after": "soon"}, 422),
    ],
)
def test_filters_that_make_no_sense_are_refused(client: TestClient, query: dict[str, str], status: int) -> None:
    answer = client.get(AT, params=query)
    assert answer.status_code == status
    assert error_of(answer)["hint"]


@pytest.mark.parametrize("page", [None, object()])
def test_a_submission_tells_its_web_page_where_there_is_one(client: TestClient, page: object) -> None:
    cast("FastAPI", client.app).state.page = page
    made = client.post(AT, json=body(single("seen", "true"))).json()
    assert made["page"] == ("/workflows/seen-1" if page else None)
