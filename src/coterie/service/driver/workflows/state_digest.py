"""The digest of a state: the part that lists show, so that they need not read the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from coterie.lifecycle import GroupState, State, Status, Waiting
from coterie.service.queue.order import queued_amount
from coterie.topology.cluster import gpu_count

Json = dict[str, Any]

_COUNTS = ("total", "running", "completed", "failed")


@dataclass(frozen=True, slots=True)
class _GroupDigest:
    """The part of a digest that one group determines; `queued` is its entry where it is in the queue."""

    total: int
    running: int
    completed: int
    failed: int
    cleaning: bool
    waiting: Waiting | None
    queued: list[Any] | None


class _Positions:
    """A set of positions that knows the first of them without looking at the others."""

    def __init__(self) -> None:
        self._members: set[int] = set()
        self._heap: list[int] = []  # all members, and former ones until they come first
        self._in_heap: set[int] = set()

    @property
    def first(self) -> int | None:
        """The first position."""
        while self._heap and self._heap[0] not in self._members:
            self._in_heap.discard(heappop(self._heap))
        return self._heap[0] if self._heap else None

    def add(self, position: int) -> None:
        """Add a position."""
        self._members.add(position)
        if position not in self._in_heap:
            self._in_heap.add(position)
            heappush(self._heap, position)

    def discard(self, position: int) -> None:
        """Remove a position."""
        self._members.discard(position)


class DigestEncoder:
    """`digest_of` for the successive states of one workflow: a group that did not change is counted once."""

    def __init__(self) -> None:
        self._groups: tuple[GroupState, ...] = ()
        self._known: list[_GroupDigest] = []
        self._tasks: Counter[str] = Counter()
        self._cleaning = 0
        self._queued = 0
        self._waiting = _Positions()  # groups that wait
        self._never = _Positions()  # groups that can never be placed

    def of(self, state: State, known: Mapping[str, Any], *, divided: bool = False) -> Json:
        """Return the digest of a state; `known` is the one before, or the part that no state changes.

        The entries of queued groups are stored with the parts of a `divided` state, and not in its digest.
        """
        amounts, shapes = [gpu_count(shape) for shape in known["shapes"]], known["shape_of"]

        def counted(group: GroupState) -> _GroupDigest:
            statuses = [task.status for task in group.tasks]
            return _GroupDigest(
                len(statuses),
                statuses.count(Status.RUNNING),
                statuses.count(Status.COMPLETED),
                sum(status.failed for status in statuses),
                group.cleaning,
                group.waiting,
                queued_amount(group, state.submitted or 0.0, amounts, shapes),
            )

        if len(self._groups) != len(state.groups):
            self._tasks, self._cleaning, self._queued = Counter(), 0, 0
            self._waiting, self._never = _Positions(), _Positions()
            self._known = [counted(group) for group in state.groups]
            for index, each in enumerate(self._known):
                self._count(index, each, 1)
        else:
            for index, (old, new) in enumerate(zip(self._groups, state.groups, strict=True)):
                if old is not new:
                    self._count(index, self._known[index], -1)
                    self._known[index] = counted(new)
                    self._count(index, self._known[index], 1)
        self._groups = state.groups
        return self._whole(state, known, range(0 if divided else len(self._known)))

    def queued(self, groups: range) -> list[list[Any]]:
        """Return the entries of those of some groups that are in the queue."""
        return [found for index in groups if (found := self._known[index].queued) is not None]

    def _count(self, index: int, group: _GroupDigest, sign: int) -> None:
        """Add a group to the sums, or take it out of them."""
        for name in _COUNTS:
            self._tasks[name] += sign * getattr(group, name)
        self._cleaning += sign * group.cleaning
        self._queued += sign * (group.queued is not None)
        if group.waiting:
            for positions in (self._waiting, self._never) if group.waiting.never else (self._waiting,):
                (positions.add if sign > 0 else positions.discard)(index)

    def _whole(self, state: State, known: Mapping[str, Any], listed: range) -> Json:
        first = self._waiting.first if self._never.first is None else self._never.first
        why = self._known[first].waiting if first is not None else None
        return {
            **known,
            "message": state.message,
            "cleaning": state.status.final and self._cleaning > 0,
            "queued": self.queued(listed),
            "queued_groups": self._queued,
            "waiting": {
                "group": state.groups[first].name,
                "reason": why.reason,
                "message": why.message,
                "since": why.since,
                "never": why.never,
            }
            if first is not None and why is not None
            else None,
            "tasks": {name: self._tasks[name] for name in _COUNTS},
        }


def digest_of(state: State, known: Mapping[str, Any]) -> Json:
    """Return the digest of a state; `known` is the one before, or the part that no state changes."""
    return DigestEncoder().of(state, known)
