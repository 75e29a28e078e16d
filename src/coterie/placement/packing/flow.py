"""Packing of pods of one shape that are bound to overlapping regions, by maximum flow."""

from __future__ import annotations

import numpy as np

from coterie.placement.packing.node_table import NodeTable, Packing
from coterie.placement.search.choice import tightest


def flow(table: NodeTable) -> Packing | None:
    """Return a packing of items that share one shape, or None when there is none.

    Nodes that the same items may use form one sink; pods are pushed along augmenting paths until all are placed.
    """
    need = table.needs[0]
    fits = (table.free[need > 0] // need[need > 0, None]).min(axis=0)
    sinks: dict[bytes, list[int]] = {}
    for node in range(len(table.nodes)):
        sinks.setdefault(table.may[:, node].tobytes(), []).append(node)
    members = list(sinks.values())
    spare = [int(fits[nodes].sum()) for nodes in members]
    reach = [
        [sink for sink, nodes in enumerate(members) if table.may[item, nodes[0]]] for item in range(len(table.items))
    ]
    placed = [[0] * len(members) for _ in table.items]
    for item, one in enumerate(table.items):
        left = one.pods
        while left:
            path = _path(item, reach, placed, spare)
            if path is None:
                return None
            left -= _push(path, placed, spare, left)
    return _nodes(table, members, placed, fits)


def _path(
    start: int, reach: list[list[int]], placed: list[list[int]], spare: list[int]
) -> list[tuple[int, int]] | None:
    """Return (item, sink) steps from an item to a sink with capacity, moving other items' pods aside."""
    came: dict[int, tuple[int, int] | None] = {start: None}
    queue = [start]
    for item in queue:
        for sink in reach[item]:
            if spare[sink]:
                path = [(item, sink)]
                step = came[item]
                while step is not None:
                    path.append(step)
                    step = came[step[0]]
                return path[::-1]
            for other, row in enumerate(placed):
                if row[sink] and other not in came:
                    came[other] = (item, sink)
                    queue.append(other)
    return None


def _push(path: list[tuple[int, int]], placed: list[list[int]], spare: list[int], left: int) -> int:
    moved = [placed[path[at + 1][0]][path[at][1]] for at in range(len(path) - 1)]
    pods = min(left, spare[path[-1][1]], *moved) if moved else min(left, spare[path[-1][1]])
    for at, (item, sink) in enumerate(path):
        placed[item][sink] += pods
        if at + 1 < len(path):
            placed[path[at + 1][0]][sink] -= pods
    spare[path[-1][1]] -= pods
    return pods


def _nodes(table: NodeTable, members: list[list[int]], placed: list[list[int]], fits: np.ndarray) -> Packing:
    left = fits.copy()
    result: list[list[tuple[int, int]]] = [[] for _ in table.items]
    for item, row in enumerate(placed):
        for sink, pods in enumerate(row):
            nodes = np.array(members[sink])
            for at, count in tightest(left[nodes], pods, (table.ties[nodes],)) if pods else ():
                left[nodes[at]] -= count
                result[item].append((int(table.nodes[nodes[at]]), count))
    return tuple(tuple(sorted(pairs)) for pairs in result)
