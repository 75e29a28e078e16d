"""The change feed: many followers share one thread, survive store outages, and are limited in number."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.responses import Response, StreamingResponse

from coterie.errors import Unavailable
from coterie.service.api.change_feed import Followers
from coterie.service.service import Service
from tests.eventually import eventually
from tests.service.running_service import single

PATIENCE_S = 60.0


def watchers() -> int:
    return sum(thread.name == "coterie-followers" for thread in threading.enumerate())


def test_any_number_of_followers_share_one_thread_which_ends_with_them(service: Service) -> None:
    followers = Followers(service)

    async def one(left: asyncio.Event) -> None:
        with followers.joined():
            await left.wait()

    async def scene() -> None:
        left = asyncio.Event()
        tasks = [asyncio.create_task(one(left)) for _ in range(50)]
        await asyncio.to_thread(eventually, lambda: len(followers) == 50)
        assert watchers() == 1
        left.set()
        await asyncio.gather(*tasks)
        await asyncio.to_thread(eventually, lambda: watchers() == 0)

    asyncio.run(scene())
    assert len(followers) == 0


def test_news_reach_everybody_who_listens(service: Service) -> None:
    followers = Followers(service)

    async def scene() -> None:
        with followers.joined() as first, followers.joined() as second:
            while await first.news(1.0):  # what happened before
                pass
            await second.news(0.0)
            await asyncio.to_thread(service.submit, single("one", "true"))
            assert await first.news(PATIENCE_S)
            assert await second.news(PATIENCE_S)

    asyncio.run(scene())


def test_a_store_that_is_away_for_a_while_ends_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    followers = Followers(service)
    asked = threading.Event()

    def away(_after: int, _timeout_s: float) -> bool:
        asked.set()
        raise Unavailable("away")

    async def scene() -> None:
        monkeypatch.setattr(service, "changed", away)
        with followers.joined() as ear:
            await asyncio.to_thread(eventually, asked.is_set)
            monkeypatch.undo()
            await asyncio.to_thread(service.submit, single("one", "true"))
            assert await ear.news(PATIENCE_S)

    asyncio.run(scene())


def test_closing_wakes_all_and_lets_nobody_wait_again(service: Service) -> None:
    followers = Followers(service)

    async def scene() -> None:
        with followers.joined() as ear:
            while await ear.news(1.0):
                pass
            followers.close()
            assert await ear.news(PATIENCE_S)
        assert followers.closed
        await asyncio.to_thread(eventually, lambda: watchers() == 0)

    asyncio.run(scene())


def test_there_is_room_for_so_many_and_the_next_is_told_to_come_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.service.api.change_feed.MOST", 1)
    followers = Followers(service)

    def stream() -> Response:
        return followers.streamed(StreamingResponse(iter([b"x"])))

    async def scene() -> None:
        first = stream()
        with pytest.raises(Unavailable, match="1 streams are open already"):
            stream()  # even though the first has not begun to send
        await first({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
        stream()

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        return

    asyncio.run(scene())
