"""The walk through a PodGroup: part by part, domain by domain, pod by pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.backends.kai.forecast.candidates import Finder, TrialDomain, TrialDomains
from coterie.backends.kai.forecast.outcomes import ForecastPlacement, ForecastReason, ForecastRefusal, ForecastUnknown
from coterie.backends.kai.forecast.room import Floats, FreeAmounts
from coterie.backends.kai.forecast.tree import Nodes, Tree
from coterie.backends.kai.pod_group import PodGroupPart, needed
from coterie.gang.tree import Task
from coterie.placement.budget import Budget, Exhausted
from coterie.placement.capacity import Capacity

# One step is one search for a pod's node on up to this many nodes.
_NODES_A_STEP = 500
DEFAULT_STEPS = 50_000


def kai_would_place(
    root: PodGroupPart, capacity: Capacity, *, running: Mapping[str, str] | None = None, steps: int = DEFAULT_STEPS
) -> ForecastPlacement | ForecastRefusal | ForecastUnknown:
    """Return KAI's outcome for a PodGroup on a capacity, as the only work of its queue.

    Pods of a leaf are taken in the order of its tasks. KAI itself goes by the label `kai.scheduler/task-priority`, else
    by creation time in seconds, else by uid. `running` has the nodes of running tasks.
    """
    walk = _Walk(root, capacity, Budget(steps))
    for task, node in (running or {}).items():
        walk.where[task] = capacity.domains.cluster.position[node]
    try:
        return walk.result()
    except Exhausted:
        return ForecastUnknown()


def minimum(leaf: PodGroupPart) -> int:
    """Return how many pods of a leaf start together; KAI counts zero as one."""
    return max(1, needed(leaf))


@dataclass(frozen=True, slots=True)
class _Mark:
    """A state of the walk, to return to."""

    placed: int
    done: int


class _Walk:
    def __init__(self, root: PodGroupPart, capacity: Capacity, budget: Budget) -> None:
        self._root = root
        self._leaves = sorted((part for part, _ in root.walk() if not part.parts), key=lambda part: part.name)
        topology, cluster = capacity.domains.topology, capacity.domains.cluster
        self._room = FreeAmounts(capacity, root.all_tasks())
        self._finder = Finder(self._room, Tree.of(cluster, topology), topology)
        self._budget = budget
        self.where: dict[str, int] = {}
        self._placed: list[Task] = []  # since the walk began, in order
        self._done: list[str] = []  # names of leaves placed, in order
        self._domains: dict[str, str] = {}
        self._refused: tuple[int, ForecastRefusal] | None = None

    def result(self) -> ForecastPlacement | ForecastRefusal:
        """Place all minima at once, then one pod after the other."""
        while tasks := self._next():
            started = all(self._running(leaf) >= minimum(leaf) for leaf in self._leaves)
            if self._place(self._root, tasks, np.arange(len(self._room.names)), None):
                continue
            if not started and self._refused:
                return self._refused[1]
            break
        nodes = {task: self._room.names[node] for task, node in self.where.items()}
        waiting = tuple(task.name for task in self._root.all_tasks() if task.name not in self.where)
        return ForecastPlacement(nodes, dict(self._domains), waiting)

    def _next(self) -> list[Task]:
        """Return the tasks to place at once: those missing to the minima, else one for the least grown leaf.

        If that one does not fit, KAI tries the same again in its next round, and other leaves do not grow either.
        """
        short = [leaf for leaf in self._leaves if self._running(leaf) < minimum(leaf)]
        if short:
            return [task for leaf in short for task in self._pending(leaf)[: minimum(leaf) - self._running(leaf)]]
        grown = sorted(self._leaves, key=lambda leaf: self._running(leaf) / minimum(leaf))
        return next((pending[:1] for leaf in grown if (pending := self._pending(leaf))), [])

    def _place(self, part: PodGroupPart, tasks: Sequence[Task], nodes: Nodes, bonus: Floats | None) -> bool:
        """Place those of `tasks` that are in a part on some of `nodes`."""
        own = {task.name for task in part.all_tasks()}
        tasks = [task for task in tasks if task.name in own]
        if not tasks:
            return True
        found = self._candidates(part, tasks, nodes, bonus)
        if found.why is not None:
            self._refuse(part, found.why, len(tasks), found.most)
        for domain in found.domains:
            mark = _Mark(len(self._placed), len(self._done))
            if self._place_below(part, tasks, domain.nodes, found.bonus):
                if part.constraint:
                    self._domains[part.name] = domain.id
                return True
            self._back_to(mark)
        return False

    def _candidates(
        self, part: PodGroupPart, tasks: Sequence[Task], nodes: Nodes, bonus: Floats | None
    ) -> TrialDomains:
        """Return the domains of a part.

        One without a constraint has the nodes of its parent; one without a preferred level has its parent's scores.
        """
        if not part.constraint:
            return TrialDomains((TrialDomain("", nodes),), bonus)
        occupied = {self.where[task.name] for task in part.all_tasks() if task.name in self.where}
        found = self._finder.candidates(part.constraint, tasks, nodes, occupied)
        return found if found.bonus is not None else TrialDomains(found.domains, bonus, found.why, found.most)

    def _place_below(self, part: PodGroupPart, tasks: Sequence[Task], nodes: Nodes, bonus: Floats | None) -> bool:
        if part.parts:
            # Parts with subgroups of their own come first; names decide within each kind.
            ordered = sorted(part.parts, key=lambda below: (not below.parts, below.name))
            return all(self._place(below, tasks, nodes, bonus) for below in ordered)
        for task in tasks:
            self._budget.spend(1 + len(nodes) // _NODES_A_STEP)
            node = self._room.best_node(task, nodes, bonus)
            if node is None:
                self._refuse(part, ForecastReason.NO_NODE_FOR_A_POD, len(tasks), None)
                return False
            self._room.take(task, node)
            self.where[task.name] = node
            self._placed.append(task)
        self._done.append(part.name)
        return True

    def _back_to(self, mark: _Mark) -> None:
        while len(self._placed) > mark.placed:
            task = self._placed.pop()
            self._room.give(task, self.where.pop(task.name))
        del self._done[mark.done :]

    def _refuse(self, part: PodGroupPart, why: ForecastReason, wanted: int, most: int | None) -> None:
        """Remember a failure if no earlier attempt came further."""
        if self._refused is None or len(self._placed) > self._refused[0]:
            self._refused = (len(self._placed), ForecastRefusal(part, why, wanted, most, tuple(self._done)))

    def _running(self, leaf: PodGroupPart) -> int:
        return sum(task.name in self.where for task in leaf.tasks)

    def _pending(self, leaf: PodGroupPart) -> list[Task]:
        return [task for task in leaf.tasks if task.name not in self.where]
