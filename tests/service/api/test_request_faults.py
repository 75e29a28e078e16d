"""The faults of a request are in plain words, never in those of the validating library."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.service.api.requests import error_of

AT = "/api/v1/workflows"
FOREIGN = ("Input should", "unable to", "Field required", "Extra inputs", "pydantic", "dictionary")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"limit": "5000"}, "query.limit: must be at most 1000"),
        ({"limit": "0"}, "query.limit: must be at least 1"),
        ({"limit": "x"}, "query.limit: must be a whole number"),
        ({"finished": "perhaps"}, "query.finished: must be true or false"),
        ({"submitted_after": "yesterday"}, "query.submitted_after: must be a time"),
        ({"name": "x" * 999}, "characters"),
        ({"limt": "5"}, "query.limt: there is no such parameter"),
    ],
)
def test_a_wrong_parameter_is_told_in_plain_words(client: TestClient, query: dict[str, str], said: str) -> None:
    error = error_of(client.get(AT, params=query))
    assert said in error["message"]
    assert error["hint"]
    assert not any(word in error["message"] for word in FOREIGN)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "body.source: it is missing"),
        ({"source": 3}, "body.source: must be text"),
        ({"source": "x", "priority": "URGENT"}, "body.priority: must be 'HIGH', 'NORMAL' or 'LOW'"),
        ({"source": "x", "sets": 1}, "body.sets: there is no such field"),
        ({"source": "x", "labels": []}, "body.labels: must be a JSON object"),
        ({"source": "x", "set": "a=1"}, "body.set: must be a list"),
    ],
)
def test_a_wrong_body_is_told_in_plain_words(client: TestClient, body: object, said: str) -> None:
    error = error_of(client.post(AT, json=body))
    assert said in error["message"]
    assert not any(word in error["message"] for word in FOREIGN)
