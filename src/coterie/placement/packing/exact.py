"""Exact packing of several shapes: a depth-first search over kinds of equal nodes.

It fills one node after the other with maximal patterns, to which no pod can be added: if any packing exists, one made
of such patterns does, because a pod that still fits on an earlier node can always be moved there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.placement.budget import Budget
from coterie.placement.packing.node_table import NodeTable, Packing

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _NodeClass:
    """Nodes that are equal for this packing: same free capacity, same items allowed."""

    nodes: tuple[int, ...]
    free: Vector
    items: tuple[int, ...]


class Exact:
    """A depth-first search over kinds of nodes, with a memory of failed states."""

    def __init__(self, table: NodeTable, budget: Budget) -> None:
        self._bench = table
        self._budget = budget
        self._needs = [tuple(int(x) for x in need) for need in table.needs]
        self._kinds = self._sort_nodes()
        self._single = [[self._most(kind, i) for i in range(len(table.items))] for kind in self._kinds]
        self._after = self._suffixes()
        self._failed: set[tuple[int, int, Vector]] = set()

    def solve(self) -> Packing | None:
        """Return a packing of all items, or None when there is none."""
        left = tuple(item.pods for item in self._bench.items)
        trail: list[tuple[int, Vector]] = []
        frames = [self._moves(0, 0, left)]
        while frames:
            move = next(frames[-1], None)
            if move is None:
                frames.pop()
                if trail:
                    trail.pop()
                continue
            kind, used, pattern, left = move
            trail.append((kind, pattern))
            if not any(left):
                return self._deal(trail)
            frames.append(self._moves(kind, used + 1, left))
        return None

    def _moves(self, kind: int, used: int, left: Vector) -> Iterator[tuple[int, int, Vector, Vector]]:
        """Yield (kind, nodes of it used before, pattern, pods left) for every maximal pattern of the next node."""
        while kind < len(self._kinds):
            spare = len(self._kinds[kind].nodes) - used
            if not self._could_fit(kind, spare, left):
                return
            useful = [i for i in self._kinds[kind].items if left[i] and self._single[kind][i]]
            if spare and useful:
                break
            kind, used = kind + 1, 0
        else:
            return
        state = (kind, used, left)
        if state in self._failed:
            return
        for pattern in self._patterns(self._kinds[kind].free, useful, left):
            self._budget.spend()
            rest = list(left)
            for i, pods in zip(useful, pattern, strict=True):
                rest[i] -= pods
            full = [0] * len(left)
            for i, pods in zip(useful, pattern, strict=True):
                full[i] = pods
            yield kind, used, tuple(full), tuple(rest)
        self._failed.add(state)

    def _could_fit(self, kind: int, spare: int, left: Vector) -> bool:
        counts, amounts = self._after[kind + 1]
        if any(want and counts[i] + spare * self._single[kind][i] < want for i, want in enumerate(left)):
            return False
        free = self._kinds[kind].free
        return all(
            amounts[row] + spare * free[row] >= sum(want * self._needs[i][row] for i, want in enumerate(left) if want)
            for row in range(len(free))
        )

    def _patterns(self, free: Vector, useful: Sequence[int], left: Vector) -> Iterator[Vector]:
        """Yield every maximal pattern of a node for these items, to which no further pod can be added."""
        stack: list[tuple[Vector, Vector]] = [(free, ())]
        while stack:
            room, pattern = stack.pop()
            if len(pattern) == len(useful):
                if not any(pattern[at] < left[i] and _fits(self._needs[i], room) for at, i in enumerate(useful)):
                    yield pattern
                continue
            i = useful[len(pattern)]
            need = self._needs[i]
            most = min(left[i], *(have // want for have, want in zip(room, need, strict=True) if want))
            stack.extend(
                (tuple(have - pods * want for have, want in zip(room, need, strict=True)), (*pattern, pods))
                for pods in range(most + 1)
            )

    def _sort_nodes(self) -> list[_NodeClass]:
        table = self._bench
        kinds: dict[tuple[Vector, tuple[int, ...]], list[int]] = {}
        for column, node in enumerate(table.nodes.tolist()):
            free = tuple(int(x) for x in table.free[:, column])
            items = tuple(int(i) for i in np.flatnonzero(table.may[:, column]))
            kinds.setdefault((free, items), []).append(node)
        made = [_NodeClass(tuple(nodes), free, items) for (free, items), nodes in kinds.items()]
        # Nodes with the fewest possible items first, since those items must go there.
        return sorted(made, key=lambda kind: (len(kind.items), kind.free, kind.nodes))

    def _most(self, kind: _NodeClass, item: int) -> int:
        if item not in kind.items:
            return 0
        need = self._needs[item]
        return max(0, min(have // want for have, want in zip(kind.free, need, strict=True) if want))

    def _suffixes(self) -> list[tuple[Vector, Vector]]:
        """Return, for each kind, the pods of each item and the amount of each resource that all later nodes hold."""
        counts = [0] * len(self._bench.items)
        amounts = [0] * len(self._bench.free)
        table = [(tuple(counts), tuple(amounts))]
        for kind, single in zip(reversed(self._kinds), reversed(self._single), strict=True):
            counts = [have + len(kind.nodes) * one for have, one in zip(counts, single, strict=True)]
            amounts = [have + len(kind.nodes) * one for have, one in zip(amounts, kind.free, strict=True)]
            table.append((tuple(counts), tuple(amounts)))
        return table[::-1]

    def _deal(self, trail: Sequence[tuple[int, Vector]]) -> Packing:
        placed: list[list[tuple[int, int]]] = [[] for _ in self._bench.items]
        used = [0] * len(self._kinds)
        for kind, pattern in trail:
            node = self._kinds[kind].nodes[used[kind]]
            used[kind] += 1
            for item, pods in enumerate(pattern):
                if pods:
                    placed[item].append((node, pods))
        return tuple(tuple(sorted(pairs)) for pairs in placed)


def _fits(need: Vector, room: Vector) -> bool:
    return all(have >= want for have, want in zip(room, need, strict=True))
