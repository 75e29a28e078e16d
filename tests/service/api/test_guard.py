"""The guard before all routes: served host names, same-origin writes, and body sizes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from coterie.service.api.app import create_app
from coterie.service.service import Service
from tests.service.api.requests import error_of

AT = "/api/v1/workflows"

DISGUISED = ["[::1]evil:1", "[::1].evil.example", "[::1", "localhost:evil", "localhost:80:80", "evil@localhost"]


@pytest.fixture
def small(service: Service) -> Iterator[TestClient]:
    app = create_app(service, open_to_all=True, hosts={"localhost", "::1"}, most_bytes=1000)
    with TestClient(app, base_url="http://localhost:8080") as found:
        yield found


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "LOCALHOST", "[::1]:8080", "[::1]"])
def test_a_name_that_is_served_passes(small: TestClient, host: str) -> None:
    assert small.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1", "[::2]", "::1", *DISGUISED]
)
def test_a_name_that_is_not_served_is_turned_away(small: TestClient, host: str) -> None:
    answer = small.get("/healthz", headers={"host": host})
    assert answer.status_code == 421
    assert error_of(answer)["code"] == "WrongHost"


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://localhost:8080", True),
        ("http://LOCALHOST:8080", True),
        ("http://localhost:9090", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        ("http://[", False),
    ],
)
def test_only_a_page_of_the_service_itself_may_change_something(small: TestClient, origin: str, passes: bool) -> None:  # noqa: FBT001 - a column of the table
    answer = small.post(AT, json={"source": "x"}, headers={"origin": origin})
    assert answer.status_code == (422 if passes else 403), answer.text
    assert small.get(AT, headers={"origin": origin}).status_code == 200


def test_a_body_that_is_too_large_is_turned_away_announced_or_not(small: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    for path, method in ((AT, "POST"), ("/api/v1/workflows/x-1/cancel", "POST"), ("/api/v1/pools/x", "PUT")):
        for content in (b" " * 1001, chunks()):
            answer = small.request(method, path, content=content, headers={"content-type": "application/json"})
            assert answer.status_code == 413, (path, answer.text)
            assert error_of(answer)["code"] == "TooLarge"


@pytest.mark.parametrize("length", [b"x", b"-1", b"\xb2", b"9" * 30])
def test_a_length_that_is_none_is_refused(small: TestClient, length: bytes) -> None:
    answer = small.post(AT, content=b"", headers={b"content-length": length})
    assert answer.status_code in {400, 413}
    error_of(answer)


def test_a_nul_character_in_an_address_is_refused(small: TestClient) -> None:
    assert small.get(f"{AT}?name=%00").status_code == 400
    assert small.get(f"{AT}/%00").status_code == 400


def test_answers_are_data_and_nothing_else(small: TestClient) -> None:
    for path in ("/healthz", "/nowhere", AT):
        headers = small.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
