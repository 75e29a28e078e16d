"""The order of waiting gangs, and its stored inputs, so that every replica knows it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from coterie.config.configuration import GpuQuota
from coterie.errors import Reason
from coterie.lifecycle import GroupState, Presence, State
from coterie.service.views.workflows import waits
from coterie.topology.cluster import gpu_count

PRIORITIES = ("HIGH", "NORMAL", "LOW")

# Gangs refused for these reasons are not tried until an admin changes something.
BLOCKED = frozenset({Reason.LEVEL_LOST, Reason.INVALID_SPEC, Reason.SCHEDULER_REFUSED})

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class OrderInputs:
    """The inputs of a waiting gang's order; one that `joins` adds tasks to others that run."""

    pool: str
    joins: bool
    priority: str
    since: float
    number: int
    gpus: int


def in_order(
    waiting: Mapping[Key, OrderInputs],
    used: Callable[[str], int],
    quota: Callable[[str], GpuQuota],
    overdue: Container[Key] = (),
) -> Iterator[Key]:
    """Yield the waiting gangs in order.

    Tasks that are to join running ones come first, then the gangs within a pool's guarantee, then the rest is shared by
    weight; in one pool priority decides, then age. `used` is the number of GPUs a pool has in use. It is asked again
    for each gang, so placements in between change the order. Gangs in `overdue` have been overtaken for too long.
    """
    ordered = sorted(
        waiting.items(),
        key=lambda item: (not item[1].joins, PRIORITIES.index(item[1].priority), item[1].since, item[1].number),
    )
    guarantees = {pool: quota(pool).guarantee or 0 for pool in {turn.pool for turn in waiting.values()}}
    if len(guarantees) == 1 and not any(guarantees.values()):
        yield from (key for key, _ in ordered)
        return
    asked: Counter[str] = Counter()
    joining: list[Key] = []
    joining_beyond: list[Key] = []
    covered: list[Key] = []
    beyond: dict[str, deque[tuple[Key, OrderInputs]]] = {}
    for key, turn in ordered:
        within = 0 < guarantees[turn.pool] >= used(turn.pool) + asked[turn.pool] + turn.gpus
        if within:
            asked[turn.pool] += turn.gpus
        if turn.joins:
            (joining if within else joining_beyond).append(key)
        elif within:
            covered.append(key)
        else:
            beyond.setdefault(turn.pool, deque()).append((key, turn))
    yield from (*joining, *joining_beyond, *covered)
    yield from _by_share(beyond, used, quota, overdue)


def _by_share(
    queues: dict[str, deque[tuple[Key, OrderInputs]]],
    used: Callable[[str], int],
    quota: Callable[[str], GpuQuota],
    overdue: Container[Key],
) -> Iterator[Key]:
    """Yield from the pool that has the least beyond its guarantee for its weight, gang by gang.

    A pool with an overdue gang goes first until the first such gang was tried: smaller gangs might use up its share for
    ever. A pool of weight 0 goes after all others.
    """
    quotas = {pool: quota(pool) for pool in queues}
    late = {pool: next((key for key, _ in queue if key in overdue), None) for pool, queue in queues.items()}

    def rank(pool: str) -> tuple[bool, bool, float, int, float, int]:
        turn, gpus = queues[pool][0][1], quotas[pool]
        over = max(0, used(pool) - (gpus.guarantee or 0))
        priority = PRIORITIES.index(turn.priority)
        return not gpus.weight, late[pool] is None, over / (gpus.weight or 1), priority, turn.since, turn.number

    while len(queues) > 1:
        pool = min(queues, key=rank)
        key, _ = queues[pool].popleft()
        late[pool] = None if late[pool] == key else late[pool]
        if not queues[pool]:
            del queues[pool]
        yield key
    for queue in queues.values():
        yield from (key for key, _ in queue)


def since_of(group: GroupState, submitted: float) -> float:
    """Return since when a group waits: the earliest of its waiting tasks counts."""
    return min((task.queued for task in group.tasks if task.queued is not None), default=submitted)


def queued_in(state: State, digest: Mapping[str, Any]) -> list[list[Any]]:
    """Return the digest of the groups in the queue: name, since when, GPUs, whether it joins others."""
    return list(_queued(state, digest))


def _queued(state: State, digest: Mapping[str, Any]) -> Iterator[list[Any]]:
    amounts = [gpu_count(shape) for shape in digest["shapes"]]
    shapes = digest["shape_of"]
    for group in state.groups:
        if not waits(group) or (group.waiting and group.waiting.reason in BLOCKED):
            continue
        gpus = sum(amounts[shapes.get(task.name, 0)] for task in group.tasks if task.presence is Presence.QUEUED)
        joins = any(task.present and not task.status.final for task in group.tasks)
        yield [group.name, since_of(group, state.submitted or 0.0), gpus, joins]
