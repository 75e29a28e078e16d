"""Concurrent requests for the same work share it, but never one that began before the request."""

from __future__ import annotations

import asyncio
import threading

import pytest

from coterie.errors import NotFound
from coterie.service.api.shared_work import SharedWork

PATIENCE_S = 60


class Work:
    """Work that goes on until it is let go; its answer is how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.started = threading.Semaphore(0)
        self.going = threading.Semaphore(0)

    def __call__(self) -> int:
        self.begun += 1
        mine = self.begun
        self.started.release()
        assert self.going.acquire(timeout=PATIENCE_S)
        return mine


async def _begun(work: Work) -> None:
    assert await asyncio.to_thread(work.started.acquire, timeout=PATIENCE_S)


def test_all_who_ask_before_it_is_begun_get_one_answer() -> None:
    async def asked() -> list[int]:
        shared, work = SharedWork(), Work()
        work.going.release()
        return list(await asyncio.gather(*(shared.of("list", work) for _ in range(50))))

    assert asyncio.run(asked()) == [1] * 50


def test_who_asks_while_it_is_done_gets_the_next_answer() -> None:
    async def asked() -> tuple[list[int], int]:
        shared, work = SharedWork(), Work()
        first = asyncio.create_task(shared.of("list", work))
        await _begun(work)
        later = [asyncio.create_task(shared.of("list", work)) for _ in range(20)]
        work.going.release(2)
        return [await each for each in (first, *later)], work.begun

    answers, begun = asyncio.run(asked())

    assert answers == [1] + [2] * 20
    assert begun == 2


def test_questions_that_differ_do_not_wait_for_each_other() -> None:
    async def asked() -> tuple[int, int]:
        shared, slow, quick = SharedWork(), Work(), Work()
        waiting = asyncio.create_task(shared.of("slow", slow))
        await _begun(slow)
        quick.going.release()
        early = await shared.of("quick", quick)
        slow.going.release()
        return early, await waiting

    assert asyncio.run(asked()) == (1, 1)


def test_a_failure_is_told_to_all_and_not_kept() -> None:
    answers: list[object] = []

    def failing() -> int:
        raise NotFound("gone")

    async def asked() -> None:
        shared = SharedWork()
        answers.extend(await asyncio.gather(*(shared.of("x", failing) for _ in range(3)), return_exceptions=True))
        answers.append(await shared.of("x", lambda: 7))

    asyncio.run(asked())

    assert [type(one) for one in answers] == [NotFound, NotFound, NotFound, int]


def test_one_who_leaves_does_not_take_the_answer_from_the_others() -> None:
    async def asked() -> int:
        shared, work = SharedWork(), Work()
        leaving = asyncio.create_task(shared.of("list", work))
        staying = asyncio.create_task(shared.of("list", work))
        await _begun(work)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        work.going.release()
        return await staying

    assert asyncio.run(asked()) == 1


def test_a_failure_that_nobody_waited_for_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async def asked() -> None:
        shared, work = SharedWork(), Work()

        def failing() -> int:
            work()
            raise NotFound("gone")

        leaving = asyncio.create_task(shared.of("x", failing))
        await _begun(work)
        leaving.cancel()
        await asyncio.wait([leaving])
        work.going.release()
        answer = shared.of("x", lambda: 3)
        assert await answer == 3

    asyncio.run(asked())

    assert not caplog.records
