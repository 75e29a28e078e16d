"""Health, readiness and metrics of the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coterie.errors import Unavailable
from coterie.service.api.app import create_app
from coterie.service.service import Service
from tests.eventually import eventually
from tests.service.api.requests import ended, error_of, post
from tests.service.running_service import ServiceFolder


def test_a_service_that_leads_is_ready(client: TestClient, service: Service) -> None:
    post(client, "one")
    ended(service, "one-1")  # so somebody leads
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json() == {"ready": True, "leader": True}
    eventually(lambda: client.get("/api/v1/health").json()["problems"] == [])  # a busy machine makes turns slow
    health = client.get("/api/v1/health").json()
    assert (health["store"], health["holder"]) == ("ok", service.settings.holder)
    assert client.get("/api/v1/whoami").json() == {"name": "local", "role": "admin"}


def test_a_service_that_nobody_leads_is_alive_and_not_ready(tmp_path: Path) -> None:
    service = Service(ServiceFolder(tmp_path / "place").settings())
    try:
        client = TestClient(create_app(service, open_to_all=True))
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json() == {
            "ready": False,
            "leader": False,
            "error": {
                "code": "Unavailable",
                "message": "no replica leads yet",
                "hint": "Ask again in a few seconds. GET /api/v1/health says what is wrong.",
                "in_api": [],
                "location": None,
                "errors": [],
                "details": {},
            },
        }
    finally:
        service.stop()


def test_a_probe_does_not_tell_where_a_store_is_that_is_away(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("/secret/store.db: the disk is gone")

    monkeypatch.setattr(service.store, "leader", away)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the store does not answer")
    assert "secret" not in answer.text


def test_metrics_count_requests_by_route_and_workflows_by_status(client: TestClient, service: Service) -> None:
    post(client, "one")
    ended(service, "one-1")
    for name in ("a", "b", "c"):
        client.get(f"/api/v1/workflows/{name}")
        client.get(f"/{name}")
    client.request("BREW", "/api/v1/workflows")
    text = client.get("/metrics").text
    route = 'coterie_http_requests_total{method="GET",path="/api/v1/workflows/{workflow}",status="404"} 3.0'
    assert route in text
    assert 'coterie_http_requests_total{method="GET",path="none",status="404"} 3.0' in text
    assert 'coterie_http_requests_total{method="other",path="none",status="405"} 1.0' in text
    assert 'coterie_workflows{pool="main",status="COMPLETED"} 1.0' in text
    assert 'coterie_gpus{pool="main"} 32.0' in text
    assert 'coterie_backend_gpus{backend="lab"} 32.0' in text
    assert re.search(r"^coterie_leader 1.0$", text, re.MULTILINE)
    assert re.search(r"^coterie_followers 0.0$", text, re.MULTILINE)


def test_a_store_that_is_away_is_said_to_be(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("the database does not answer", "Look at its disk.")

    monkeypatch.setattr(service.store, "workflow", away)
    answer = client.get("/api/v1/workflows/one-1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert error_of(answer) == {
        "code": "Unavailable",
        "message": "the database does not answer",
        "hint": "Look at its disk.",
        "in_api": [],
        "location": None,
        "errors": [],
        "details": {},
    }


def test_a_fault_of_the_service_itself_tells_callers_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret inside")

    monkeypatch.setattr(service, "pools", broken)
    client = TestClient(create_app(service, open_to_all=True), raise_server_exceptions=False)
    answer = client.get("/api/v1/pools")
    assert answer.status_code == 500
    assert error_of(answer)["code"] == "Unexpected"
    assert "secret" not in answer.text


def test_paths_and_methods_that_are_not_there_have_the_one_shape(client: TestClient) -> None:
    missing, wrong = client.get("/nowhere"), client.patch("/api/v1/workflows")
    assert (missing.status_code, error_of(missing)["code"]) == (404, "NotFound")
    assert (wrong.status_code, error_of(wrong)["code"]) == (405, "MethodNotAllowed")
