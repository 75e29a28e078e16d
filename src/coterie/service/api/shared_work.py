"""Work that many ask for at the same time is done once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")


class SharedWork:
    """Answers for everybody who asks the same. No answer is older than the question it is given for.

    Whoever asks while an answer is being found waits for the next one, together with all who come until it is begun.
    So however many ask, the same is never done twice at a time, and nobody waits for more than two turns. To be used
    from one event loop; the work is done in a thread.
    """

    def __init__(self) -> None:
        self._begun: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def of(self, question: Hashable, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises; questions that are equal have the same work."""
        found = self._next.get(question)
        if found is None:
            found = self._next[question] = asyncio.create_task(self._answered(question, work))
            found.add_done_callback(_heard)
        # Others may wait for it, so it goes on when one of them leaves.
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
    """Take note of a failure that nobody waited for."""
    if not task.cancelled():
        task.exception()
