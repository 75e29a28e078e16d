"""Whose turn it is: the order of the gangs that wait, and what is stored of them so that every replica knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from coterie.errors import Reason
from coterie.lifecycle import GroupState, Presence, State
from coterie.service.views import waits
from coterie.topology.cluster import GPU

PRIORITIES = ("HIGH", "NORMAL", "LOW")

# What is refused for these reasons has no turn until an admin changes something.
BLOCKED = frozenset({Reason.LEVEL_LOST, Reason.INVALID_SPEC, Reason.SCHEDULER_REFUSED})

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Turn:
    """A gang that waits, as far as its turn depends on it; one that `joins` adds tasks to others that run."""

    pool: str
    joins: bool
    priority: str
    since: float
    number: int
    gpus: int


def in_turn(
    waiting: Mapping[Key, Turn], used: Callable[[str], int], guarantee: Callable[[str], int | None]
) -> list[Key]:
    """Return who waits, in the order of their turns.

    Tasks that are to join running ones come first, then what a pool's guarantee covers, then priority, then age. `used`
    is how many GPUs a pool has in use.
    """
    ordered = sorted(
        waiting.items(),
        key=lambda item: (not item[1].joins, PRIORITIES.index(item[1].priority), item[1].since, item[1].number),
    )
    asked: Counter[str] = Counter()
    ranks: list[tuple[bool, bool, int]] = []
    for index, (_, turn) in enumerate(ordered):
        covered = guarantee(turn.pool) or 0
        beyond = not covered or used(turn.pool) + asked[turn.pool] + turn.gpus > covered
        if not beyond:
            asked[turn.pool] += turn.gpus
        ranks.append((not turn.joins, beyond, index))
    return [ordered[index][0] for *_, index in sorted(ranks)]


def since_of(group: GroupState, submitted: float) -> float:
    """Return since when a group waits: the tasks that wait first count."""
    return min((task.queued for task in group.tasks if task.queued is not None), default=submitted)


def queued_in(state: State, digest: Mapping[str, Any]) -> list[list[Any]]:
    """Return what a digest keeps of the groups in the queue: name, since when, GPUs, whether it joins others."""
    return list(_queued(state, digest))


def _queued(state: State, digest: Mapping[str, Any]) -> Iterator[list[Any]]:
    amounts = [dict(map(tuple, shape)).get(GPU, 0) for shape in digest["shapes"]]
    shapes = digest["shape_of"]
    for group in state.groups:
        if not waits(group) or (group.waiting and group.waiting.reason in BLOCKED):
            continue
        gpus = sum(amounts[shapes.get(task.name, 0)] for task in group.tasks if task.presence is Presence.QUEUED)
        joins = any(task.present and not task.status.final for task in group.tasks)
        yield [group.name, since_of(group, state.submitted or 0.0), gpus, joins]
