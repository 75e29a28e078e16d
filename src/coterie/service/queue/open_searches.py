"""Placement searches that take longer than a queue cycle: each cycle lends them more steps.

A search has its own thread, which never runs at the same time as the queue: either it has steps left and the queue
waits, or it waits for more. So nothing is computed twice, a cycle takes no longer than the steps it lends, and the
answer is the one that the whole budget gives at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Semaphore, Thread

from coterie.gang.tree import Gang
from coterie.placement.budget import DEFAULT_BUDGET, Budget
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place


class LongSearch:
    """One gang on its own capacity, searched with the whole budget, a part of it at a time."""

    def __init__(self, gang: Gang, capacity: Capacity, anchors: Mapping[str, str]) -> None:
        self._meter = _Meter()
        self._told: list[Found | NoPlacement | BaseException] = []
        # The thread must not refer to this object, or it would keep it alive, and itself.
        Thread(
            target=_answer, args=(gang, capacity, anchors, self._meter, self._told), name="question", daemon=True
        ).start()

    def go_on(self, steps: int) -> Found | NoPlacement | None:
        """Lend this many steps; return the answer, or None while it is not known."""
        if not self._told:
            self._meter.lend(steps)
        match self._told:
            case [BaseException() as error]:
                raise error
            case [Found() | NoPlacement() as answer]:
                return answer
        return None

    def __del__(self) -> None:
        self._meter.abandon()


class _Abandoned(Exception):  # noqa: N818 - it says what happened to the question; it is caught, never shown
    """Raised in the thread of a search that was given up."""


class _Meter(Budget):
    """The whole budget, of which only lent steps may be spent; then the thread waits."""

    def __init__(self) -> None:
        super().__init__(DEFAULT_BUDGET)
        self._lent = 0
        self._abandoned = False
        self._resumed = Semaphore(0)
        self._paused = Semaphore(0)

    def lend(self, steps: int) -> None:
        """Let the thread run until it has spent these steps, or is done."""
        self._lent += steps
        self._resumed.release()
        self._paused.acquire()

    def abandon(self) -> None:
        """Make the thread end."""
        self._abandoned = True
        self._resumed.release()

    def wait(self) -> None:
        """Wait for steps; raise `_Abandoned` when there will be none."""
        self._resumed.acquire()
        if self._abandoned:
            raise _Abandoned

    def done(self) -> None:
        """Let the queue continue."""
        self._paused.release()

    def spend(self, steps: int = 1) -> None:
        super().spend(steps)
        while self.spent > self._lent:
            self.done()
            self.wait()


def _answer(
    gang: Gang,
    capacity: Capacity,
    anchors: Mapping[str, str],
    meter: _Meter,
    told: list[Found | NoPlacement | BaseException],
) -> None:
    try:
        meter.wait()
        told.append(place(gang, capacity, anchors=anchors, budget=meter))
    except _Abandoned:
        return
    except BaseException as error:  # noqa: BLE001 - raised where it can be handled: by the asker
        told.append(error)
    meter.done()
