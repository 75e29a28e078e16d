"""Event lists and event streams: resumption after the last seen event, and their end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from coterie.service.service import Service
from tests.service.api.requests import ended, error_of, post

AT = "/api/v1/workflows"
STREAM = {"accept": "text/event-stream"}


def frames(text: str) -> list[dict[str, str]]:
    parts = [part for part in text.split("\n\n") if part]
    return [dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":")) for part in parts]


def data(text: str) -> list[dict[str, Any]]:
    return [json.loads(frame["data"]) for frame in frames(text) if "id" in frame]


def test_events_are_listed_with_where_to_go_on(client: TestClient, service: Service) -> None:
    post(client, "one")
    ended(service, "one-1")
    page = client.get("/api/v1/events").json()
    numbers = [event["seq"] for event in page["items"]]
    assert numbers == sorted(set(numbers))
    assert page["last"] >= numbers[-1]
    assert client.get("/api/v1/events", params={"after": numbers[0]}).json()["items"][0]["seq"] == numbers[1]
    assert len(client.get(f"{AT}/one-1/events", params={"limit": 1}).json()["items"]) == 1


def test_a_stream_of_a_workflow_tells_its_whole_life_and_ends(client: TestClient, service: Service) -> None:
    post(client, "one", "sleep 0.2")
    answer = client.get(f"{AT}/one-1/events", headers=STREAM)
    assert answer.headers["content-type"].startswith("text/event-stream")
    kinds = [event["kind"] for event in data(answer.text)]
    assert kinds[0] == "Submitted"
    last = frames(answer.text)[-1]
    assert (last["event"], json.loads(last["data"])) == ("end", {"reason": "finished"})
    assert service.workflow("one-1")["finished"]
    assert data(answer.text) == client.get(f"{AT}/one-1/events", params={"follow": "false"}).json()["items"]


def test_a_stream_goes_on_after_the_last_event_that_was_seen(client: TestClient, service: Service) -> None:
    post(client, "one")
    ended(service, "one-1")
    whole = data(client.get(f"{AT}/one-1/events", params={"follow": "true"}).text)
    for number, event in enumerate(whole[:-1]):
        headers = {**STREAM, "last-event-id": str(event["seq"])}
        assert data(client.get(f"{AT}/one-1/events", headers=headers).text) == whole[number + 1 :]
    seen_all = {**STREAM, "last-event-id": str(whole[-1]["seq"])}
    assert client.get(f"{AT}/one-1/events", headers=seen_all).status_code == 204


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 19])
def test_a_last_event_that_is_no_number_is_refused(client: TestClient, last: str) -> None:
    answer = client.get("/api/v1/events", headers={"last-event-id": last})
    assert answer.status_code == 400
    error_of(answer)


def test_events_of_a_workflow_that_is_not_there_are_not_found(client: TestClient) -> None:
    for headers in ({}, STREAM):
        assert client.get(f"{AT}/no-1/events", headers=headers).status_code == 404


def test_a_log_is_read_in_pieces(client: TestClient, service: Service) -> None:
    post(client, "talk", "echo one; echo two")
    ended(service, "talk-1")
    first = client.get(f"{AT}/talk-1/logs", params={"task": "t", "limit": 4})
    assert (first.text, first.headers["x-next-offset"]) == ("one\n", "4")
    rest = client.get(f"{AT}/talk-1/logs", params={"task": "t", "offset": 4})
    assert (rest.text, rest.headers["x-next-offset"]) == ("two\n", "8")
    assert client.get(f"{AT}/talk-1/logs", params={"task": "t", "offset": 8}).text == ""


def test_a_log_is_followed_to_its_end(client: TestClient) -> None:
    post(client, "talk", "for n in 1 2 3; do echo $n; sleep 0.1; done")
    answer = client.get(f"{AT}/talk-1/logs", params={"task": "t", "follow": "true"})
    assert answer.text == "1\n2\n3\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_followed_log_is_that_of_one_attempt(client: TestClient, service: Service) -> None:
    post(client, "talk", "echo only once; exit 1")
    ended(service, "talk-1")
    client.post(f"{AT}/talk-1/retry")
    service.wait("talk-1", lambda view: view["finished"] and view["groups"][0]["tasks"][0]["past"], timeout_s=60)
    for attempt in (1, 2):
        query = {"task": "t", "follow": "true", "attempt": attempt}
        assert client.get(f"{AT}/talk-1/logs", params=query).text == "only once\n"
    assert client.get(f"{AT}/talk-1/logs", params={"task": "t", "attempt": 3}).status_code == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [({}, 422), ({"task": "nobody"}, 404), ({"task": "t", "limit": 1 << 21}, 422), ({"task": "t", "offset": -1}, 422)],
)
def test_a_log_that_cannot_be_is_refused(client: TestClient, query: dict[str, object], status: int) -> None:
    post(client, "talk")
    answer = client.get(f"{AT}/talk-1/logs", params=query)  # type: ignore[arg-type]
    assert answer.status_code == status
    error_of(answer)
