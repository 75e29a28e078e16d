"""The nodes of one backend and Coterie's holdings on them, kept by deltas.

Usage belongs to the backend, whichever pool it was taken through, so shared nodes count once. Every distinct view of
the nodes (a pool's levels) has its own live `Capacity`; all of them are updated together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from coterie.config.configuration import Pool
from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.service.queue.live_pods import Slot, live_pods, slot
from coterie.topology.cluster import Cluster, Member
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

Key = tuple[str, str, int]  # workflow, group, number of the placement


@dataclass(frozen=True, slots=True)
class TaskHolding:
    """The holding of one task: its node, its shape, and its GPUs of the node."""

    task: str
    node: str
    shape: Shape
    gpus: tuple[int, ...] = ()


@dataclass(eq=False)
class BackendHoldings:
    """A cluster with Coterie's own holdings; `freed` grows whenever capacity is returned."""

    cluster: Cluster
    freed: int = 0
    _held: dict[Key, dict[str, TaskHolding]] = field(default_factory=dict)
    _pools: dict[Key, str] = field(default_factory=dict)
    _views: dict[Topology, Capacity] = field(default_factory=dict)
    _devices: dict[str, set[int]] = field(default_factory=dict)
    _gpus: Counter[str] = field(default_factory=Counter)
    _tasks: int = 0
    _live: Mapping[Slot, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._live = live_pods(self.cluster)
        offered = self.cluster.gpus(self.cluster.allocatable)
        foreign = self.cluster.gpus(self.cluster.held(range(len(self.cluster.pods))))
        for name, left in zip(self.cluster.names, (offered - foreign).tolist(), strict=True):
            # The devices of other pods are not known; they are assumed to be the last ones.
            self._devices[name] = set(range(max(0, left)))

    def capacity(self, pool: Pool) -> Capacity:
        """Return the live free capacity under a pool's levels, which the caller must not change."""
        found = self._views.get(pool.topology)
        if found is None:
            found = self._views[pool.topology] = Capacity.now(Domains.of(self.cluster, pool.topology))
            for key, mine in self._held.items():
                _charge(found, self._uncounted(key, mine.values()), 1)
        return found

    def vacant(self, pool: Pool) -> Capacity:
        """Return the free capacity without Coterie's holdings."""
        found = Capacity.now(self.capacity(pool).domains)
        if own := [pod for key, mine in self._held.items() for pod in self._pods(key, mine.values())]:
            found.give(self.cluster.held(own)[:, found.domains.order])
        return found

    def empty(self, pool: Pool) -> Capacity:
        """Return the capacity of an empty cluster."""
        return Capacity.empty(self.capacity(pool).domains)

    def hold(
        self, key: Key, pool: str, nodes: Mapping[str, str], shapes: Mapping[str, Shape]
    ) -> tuple[TaskHolding, ...]:
        """Take the capacity of tasks on their nodes, and assign each its GPUs, the lowest first."""
        taken = []
        for task, node in nodes.items():
            gpus = tuple(sorted(self._devices[node])[: shapes[task].gpus])
            self._devices[node].difference_update(gpus)
            taken.append(TaskHolding(task, node, shapes[task], gpus))
        return self.restore(key, pool, taken)

    def restore(self, key: Key, pool: str, held: Sequence[TaskHolding]) -> tuple[TaskHolding, ...]:
        """Take exactly this holding, as it was before a restart; a node that is gone holds nothing.

        Holdings that a task of the placement already has are not taken again.
        """
        mine = self._held.get(key, {})
        kept = tuple(one for one in held if one.node in self._devices and one.task not in mine)
        if not kept:
            return kept
        self._tasks += len(kept)
        for one in kept:
            self._devices[one.node].difference_update(one.gpus)
            self._held.setdefault(key, {})[one.task] = one
            self._gpus[pool] += one.shape.gpus
        self._pools[key] = pool
        for capacity in self._views.values():
            _charge(capacity, self._uncounted(key, kept), 1)
        return kept

    def release(self, key: Key, tasks: Iterable[str]) -> None:
        """Return the capacity of a placement's tasks; tasks without holdings are ignored."""
        mine = self._held.get(key, {})
        back = [mine.pop(task) for task in tasks if task in mine]
        self._tasks -= len(back)
        for one in back:
            self._devices[one.node].update(one.gpus)
            self._gpus[self._pools[key]] -= one.shape.gpus
        if not mine:
            self._held.pop(key, None)
            self._pools.pop(key, None)
        if back:
            self.freed += 1
            for capacity in self._views.values():
                _charge(capacity, self._uncounted(key, back), -1)

    def held(self, key: Key) -> Mapping[str, TaskHolding]:
        """Return the holdings of a placement, by task."""
        return self._held.get(key, {})

    def holdings(self) -> Iterator[TaskHolding]:
        """Yield all holdings."""
        for mine in self._held.values():
            yield from mine.values()

    def placements(self) -> Iterator[tuple[Key, str, tuple[TaskHolding, ...]]]:
        """Yield every placement with its pool and its tasks' holdings."""
        for key, mine in self._held.items():
            yield key, self._pools[key], tuple(mine.values())

    def domains(self, pool: Pool, node: str) -> dict[str, str]:
        """Return the values of a node's levels under a pool."""
        domains = self.capacity(pool).domains
        position = domains.position.get(node)
        return {} if position is None else domains.values(position)

    def present(self, anchors: Mapping[str, str]) -> dict[str, str]:
        """Return the anchors of a gang whose nodes still exist."""
        return {task: node for task, node in anchors.items() if node in self.cluster.position}

    def shows(self, workflow: str, group: str, tasks: Iterable[str]) -> bool:
        """Return whether the snapshot shows a live pod of one of these tasks."""
        known = {found[:3] for found in self._live}
        return any(slot(Member(workflow, group, task), "")[:3] in known for task in tasks)

    @property
    def tasks(self) -> int:
        """The number of tasks with holdings."""
        return self._tasks

    def gpus(self, pool: str) -> int:
        """Return how many GPUs the tasks of a pool hold."""
        return self._gpus[pool]

    @contextmanager
    def closed(self, nodes: Iterable[str]) -> Iterator[None]:
        """Close some nodes to all gangs for a while."""
        names = list(nodes)
        taken = []
        for capacity in self._views.values():
            amounts = np.zeros_like(capacity.free)
            where = [capacity.domains.position[name] for name in names if name in capacity.domains.position]
            amounts[:, where] = np.maximum(capacity.free[:, where], 0)
            capacity.give(-amounts)
            taken.append((capacity, amounts))
        try:
            yield
        finally:
            for capacity, amounts in taken:
                capacity.give(amounts)

    def _uncounted(self, key: Key, held: Iterable[TaskHolding]) -> list[TaskHolding]:
        """Return the holdings without a live pod: the snapshot includes the others, until one comes without them."""
        return [one for one in held if self._slot(key, one) not in self._live]

    def _pods(self, key: Key, held: Iterable[TaskHolding]) -> list[int]:
        """Return the live pods behind some holdings."""
        return [self._live[found] for one in held if (found := self._slot(key, one)) in self._live]

    @staticmethod
    def _slot(key: Key, one: TaskHolding) -> Slot:
        return slot(Member(key[0], key[1], one.task), one.node)


def _charge(capacity: Capacity, held: Iterable[TaskHolding], sign: int) -> None:
    by_shape: dict[Shape, dict[int, int]] = {}
    for one in held:
        position = capacity.domains.position.get(one.node)
        if position is not None:
            counts = by_shape.setdefault(one.shape, {})
            counts[position] = counts.get(position, 0) + sign
    for shape, counts in by_shape.items():
        capacity.take(shape, counts.keys(), counts.values())
