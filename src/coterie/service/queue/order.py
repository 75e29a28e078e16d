"""The order of waiting gangs, and its stored inputs, so that every replica knows it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from coterie.config.configuration import GpuQuota
from coterie.errors import Reason
from coterie.lifecycle import GroupState, Presence
from coterie.service.views.workflows import waits

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

    @property
    def rank(self) -> tuple[bool, int, float, int]:
        """The rank within a pool: tasks that join others first, then by priority, then by age."""
        return not self.joins, PRIORITIES.index(self.priority), self.since, self.number


def in_order(
    waiting: Mapping[Key, OrderInputs],
    used: Callable[[str], int],
    quota: Callable[[str], GpuQuota],
) -> Iterator[Key]:
    """Yield the waiting gangs in order, as `shared_order` defines it."""
    ordered = sorted(waiting.items(), key=lambda item: item[1].rank)
    alone = [EqualGangs(key, turn, 1) for key, turn in ordered]
    pools = {turn.pool for turn in waiting.values()}
    return (key for key, _ in shared_order(alone, pools, used, quota))


class EqualGangs(NamedTuple, Generic[Key]):
    """Gangs that follow one another and have equal inputs of their order, under one key."""

    key: Key
    turn: OrderInputs
    size: int


def shared_order(
    ordered: Sequence[EqualGangs[Key]],
    pools: Collection[str],
    used: Callable[[str], int],
    quota: Callable[[str], GpuQuota],
    overdue: Callable[[Key, int], bool] = lambda _key, _position: False,
    refused: Container[Key] = (),
) -> Iterator[tuple[Key, int]]:
    """Yield the waiting gangs of some pools, which are sorted by rank, in the order in which they are tried.

    Each is the key of equal gangs, with how many of them are next. Tasks that are to join running ones come first, then
    the gangs within a pool's guarantee, then the rest is shared by weight; in one pool priority decides, then age.
    `used` is the number of GPUs a pool has in use. It is asked again for each gang, so placements in between change the
    order. `overdue` tells whether one of some equal gangs, by its position among them, has been overtaken for too long;
    then so have those before it. Where one of them has been added to `refused` meanwhile, the rest need not be tried.
    """
    guarantees = {pool: quota(pool).guarantee or 0 for pool in pools}
    if len(guarantees) == 1 and not any(guarantees.values()):
        yield from ((key, count) for key, _, count in ordered)
        return
    asked: Counter[str] = Counter()
    joining: list[tuple[Key, int]] = []
    joining_beyond: list[tuple[Key, int]] = []
    covered: list[tuple[Key, int]] = []
    beyond: dict[str, deque[EqualGangs[Key]]] = {}
    late: dict[str, Key] = {}  # the first overdue gang beyond the guarantee of each pool
    for key, turn, count in ordered:
        within = 0
        if guarantee := guarantees[turn.pool]:
            within = _fitting(guarantee - used(turn.pool) - asked[turn.pool], turn.gpus, count)
        asked[turn.pool] += within * turn.gpus
        if within:
            (joining if turn.joins else covered).append((key, within))
        if within < count and turn.joins:
            joining_beyond.append((key, count - within))
        elif within < count:
            beyond.setdefault(turn.pool, deque()).append(EqualGangs(key, turn, count - within))
            if turn.pool not in late and overdue(key, within):
                late[turn.pool] = key
    yield from (*joining, *joining_beyond, *covered)
    yield from _by_share(beyond, used, quota, late, refused)


def _fitting(left: int, gpus: int, count: int) -> int:
    """Return how many of some equal gangs fit into the rest of a guarantee."""
    if left < gpus:
        return 0
    return min(count, left // gpus) if gpus else count


def _by_share(
    queues: dict[str, deque[EqualGangs[Key]]],
    used: Callable[[str], int],
    quota: Callable[[str], GpuQuota],
    late: dict[str, Key],
    refused: Container[Key],
) -> Iterator[tuple[Key, int]]:
    """Yield from the pool that has the least beyond its guarantee for its weight, gang by gang.

    A pool with a `late` gang goes first until that was tried: smaller gangs might use up its share for ever. A pool of
    weight 0 goes after all others.
    """
    quotas = {pool: quota(pool) for pool in queues}

    def rank(pool: str) -> tuple[bool, bool, float, int, float, int]:
        turn, gpus = queues[pool][0].turn, quotas[pool]
        over = max(0, used(pool) - (gpus.guarantee or 0))
        priority = PRIORITIES.index(turn.priority)
        return not gpus.weight, pool not in late, over / (gpus.weight or 1), priority, turn.since, turn.number

    while len(queues) > 1:
        pool = min(queues, key=rank)
        key, turn, count = queues[pool].popleft()
        was_late = pool in late and late[pool] == key
        if was_late:
            del late[pool]
        # A refusal changes no share, so the rest follows at once, unless the pool has just lost its precedence.
        following = count if key in refused and not was_late else 1
        if count > following:
            queues[pool].appendleft(EqualGangs(key, turn, count - following))
        if not queues[pool]:
            del queues[pool]
        yield key, following
    for queue in queues.values():
        yield from ((key, count) for key, _, count in queue)


def since_of(group: GroupState, submitted: float) -> float:
    """Return since when a group waits: the earliest of its waiting tasks counts."""
    return min((task.queued for task in group.tasks if task.queued is not None), default=submitted)


def queued_amount(
    group: GroupState, submitted: float, amounts: Sequence[int], shapes: Mapping[str, int]
) -> list[Any] | None:
    """Return the entry of a digest for a group in the queue: name, since when, GPUs, whether it joins others.

    None for a group that is not in it. `amounts` are the GPUs of each shape, `shapes` has the shape of each task that
    does not have the first.
    """
    if not waits(group) or (group.waiting and group.waiting.reason in BLOCKED):
        return None
    gpus = sum(amounts[shapes.get(task.name, 0)] for task in group.tasks if task.presence is Presence.QUEUED)
    joins = any(task.present and not task.status.final for task in group.tasks)
    return [group.name, since_of(group, submitted), gpus, joins]
