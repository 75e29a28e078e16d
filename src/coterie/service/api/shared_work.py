"""Work that concurrent requests need alike, done once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")


class SharedWork:
    """Shared results for equal requests; no result is older than the request it answers.

    A request that arrives while a result is being computed waits for the next one, together with all that arrive until
    it is begun. So the same work is never done twice at a time, and no request waits for more than two rounds. To be
    used from one event loop; the work is done in a thread.
    """

    def __init__(self) -> None:
        self._begun: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def of(self, question: Hashable, work: Callable[[], T]) -> T:
        """Return the result of `work`, or raise its exception; equal questions have the same work."""
        found = self._next.get(question)
        if found is None:
            found = self._next[question] = asyncio.create_task(self._answered(question, work))
            found.add_done_callback(_heard)
        # Other requests may wait for it, so it continues when one of them leaves.
        return cast("T", await asyncio.shield(found))

    async def _answered(self, question: Hashable, work: Callable[[], T]) -> T:
        before = self._begun.get(question)
        if before is not None:
            await asyncio.wait([before])
        mine = self._begun[question] = self._next.pop(question)
        try:
            return await run_in_threadpool(work)
        finally:
            if self._begun[question] is mine:
                del self._begun[question]


def _heard(task: asyncio.Task[Any]) -> None:
    """Retrieve an exception that no request waited for."""
    if not task.cancelled():
        task.exception()
