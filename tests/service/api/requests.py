"""Helpers for API requests in tests."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.service.running_service import single, task

Json = dict[str, Any]
PATIENCE_S = 60.0


def body(submission: Submission, **more: object) -> Json:
    return {"source": submission.source.decode(), **more}


def post(client: TestClient, name: str, script: str = "true", *, gpu: int = 4, **more: object) -> str:
    answer = client.post("/api/v1/workflows", json=body(single(name, script, gpu), **more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def team(size: int, script: str = "true") -> list[str]:
    """Return the tasks of a group, of which the first leads."""
    return [task(f"t{n}", script, "" if n else "lead: true") for n in range(size)]


def ended(service: Service, ident: str) -> Json:
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert view["finished"], view
    return view


def waiting(service: Service, ident: str) -> Json:
    view = service.wait(ident, lambda seen: bool(seen["waiting"]), timeout_s=PATIENCE_S)
    assert view["waiting"], view
    return view


def error_of(answer: Any) -> Json:
    """Return the error of an answer, which has the one shape of all."""
    assert set(answer.json()) == {"error"}, answer.text
    error: Json = answer.json()["error"]
    assert set(error) == {"code", "message", "hint", "in_api", "location", "errors", "details"}
    assert error["message"]
    return error
