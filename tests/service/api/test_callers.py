"""Unknown callers are refused, and streams of revoked callers end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from coterie.errors import Unavailable
from coterie.service.api import access
from coterie.service.api.access import Admission
from coterie.service.api.app import create_app
from coterie.service.api.change_feed import Followers
from coterie.service.api.routes import events, logs
from coterie.service.api.shared_work import SharedWork
from coterie.service.security import Caller, caller_of, new_token
from coterie.service.service import Service
from tests.service.api.requests import error_of
from tests.service.running_service import ServiceFolder, single

PATIENCE_S = 60.0


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Service]:
    """Give a service that nobody drives, with a token."""
    service = Service(ServiceFolder(tmp_path / "place").settings())
    new_token(service.store, "ann", "user", now=time.time())
    yield service
    service.stop()


BODIES = [
    ("POST", "/api/v1/workflows"),
    ("POST", "/api/v1/plan"),
    ("POST", "/api/v1/workflows/one-1/cancel"),
    ("POST", "/api/v1/workflows/one-1/retry"),
    ("PUT", "/api/v1/pools/one"),
    ("POST", "/api/pool/main/workflow"),
]


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_the_body_of_a_caller_who_is_not_known_is_not_even_read(guarded: Service, method: str, path: str) -> None:
    app = create_app(guarded, open_to_all=True)
    told: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"9000000")],
    }
    asyncio.run(app(scope, receive, send))
    assert told[0]["status"] == 401


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_a_body_that_is_no_json_is_no_fault_of_a_caller_who_is_not_known(
    guarded: Service, method: str, path: str
) -> None:
    client = TestClient(create_app(guarded, open_to_all=True))
    answer = client.request(method, path, content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, error_of(answer)["code"]) == (401, "Unauthorized")


def test_a_body_of_another_type_is_told_so(client: TestClient) -> None:
    for path in ("/api/v1/workflows/one-1/cancel", "/api/v1/workflows/one-1/retry", "/api/pool/main/workflow"):
        answer = client.post(path, content=b"force=1", headers={"content-type": "application/x-www-form-urlencoded"})
        assert (answer.status_code, error_of(answer)["code"]) == (415, "UnsupportedMediaType")
        assert error_of(answer)["message"] == "a body is application/json, not application/x-www-form-urlencoded"


class Token:
    """A token that can be deleted, or whose store goes away, while a stream is open."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._header = f"Bearer {new_token(service.store, 'eve', 'viewer', now=time.time())}"
        self.away = False

    async def ask(self) -> Caller:
        if self.away:
            raise Unavailable("away")
        now = self._service.settings.now()
        return caller_of(self._service.store, self._header, open_to_all=False, now=now)

    def delete(self) -> None:
        (mine,) = [token for token in self._service.store.tokens() if token.name == "eve"]
        self._service.store.delete_token(mine.id)


async def _next(stream: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(stream)


def _end(frame: bytes) -> Any:
    assert frame.startswith(b"event: end"), frame
    return json.loads(frame.partition(b"data: ")[2])


def test_a_token_that_was_deleted_hears_of_nothing_more(service: Service) -> None:
    token, followers = Token(service), Followers(service)

    async def scene() -> None:
        after = service.last_event()
        stream = events.EventStream(service, followers, SharedWork(), Admission(token.ask)).events(None, after)
        async with aclosing(cast("Any", stream)):
            assert (await _next(stream)).startswith(b"retry")
            await asyncio.to_thread(service.submit, single("one", "true"))
            assert b"one-1" in await _next(stream)
            while b"Finished" not in await _next(stream):
                pass
            token.delete()
            await asyncio.to_thread(service.submit, single("secret", "true"))
            assert _end(await _next(stream)) == {"reason": "unauthorized"}

    asyncio.run(scene())


def test_a_token_that_was_deleted_ends_a_stream_on_which_nothing_happens(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "RECHECK_S", 0.0)
    monkeypatch.setattr(events, "LOOK_S", 0.01)
    token, followers = Token(service), Followers(service)

    async def scene() -> None:
        after = service.last_event()
        stream = events.EventStream(service, followers, SharedWork(), Admission(token.ask)).events(None, after)
        async with aclosing(cast("Any", stream)):
            await _next(stream)
            token.delete()
            assert _end(await _next(stream)) == {"reason": "unauthorized"}

    asyncio.run(scene())


def test_a_store_that_is_away_neither_tells_nor_ends_anything(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LOOK_S", 0.01)
    token, followers = Token(service), Followers(service)
    token.away = True

    async def scene() -> None:
        after = service.last_event()
        stream = events.EventStream(service, followers, SharedWork(), Admission(token.ask)).events(None, after)
        async with aclosing(cast("Any", stream)):
            await _next(stream)
            await asyncio.to_thread(service.submit, single("one", "true"))
            told = asyncio.ensure_future(_next(stream))
            done, _ = await asyncio.wait([told], timeout=0.3)
            assert not done
            token.away = False
            assert b"Submitted" in await told

    asyncio.run(scene())


def test_a_token_that_was_deleted_reads_no_more_of_a_log(service: Service, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    service.submit(single("talk", f"echo before; while ! test -e {gate}; do sleep 0.05; done; echo after"))
    token, followers = Token(service), Followers(service)

    async def scene() -> list[bytes]:
        stream = logs._followed(service, followers, Admission(token.ask), logs.LogRequest("talk-1", "t", None, 0))
        async with aclosing(cast("Any", stream)):
            pieces = [await _next(stream)]
            token.delete()
            gate.touch()
            async with asyncio.timeout(PATIENCE_S):
                return [*pieces, *[piece async for piece in stream]]

    assert asyncio.run(scene()) == [b"before\n"]
