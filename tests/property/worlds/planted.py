"""Worlds built around a placement: the rest of the capacity is filled, then perhaps spoilt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from coterie.gang.tree import Shape
from coterie.topology.cluster import GPU, PODS, Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.placement.twin import TwinCapacity, accepts, fits, home, less, spare
from tests.property.worlds.pieces import RESERVED, Leaf, Size, Sketch, chance, shape

Left = dict[str, dict[str, int]]  # node name to what it has left


def plant(
    rng: Random, size: Size, topology: Topology, nodes: Sequence[Node], shapes: Sequence[Shape]
) -> tuple[Sketch, Left]:
    """Draw up a gang by putting tasks on nodes; return it and what the nodes have left."""
    domains = Domains.of(Cluster.of(nodes), topology)
    names = domains.cluster.names
    left: Left = dict(zip(names, spare(domains, TwinCapacity.NOW), strict=True))
    most = max(rng.randint(1, size.tasks), rng.randint(1, size.tasks))
    required, crowd = rng.choice(((15, 8), (15, 8), (60, 4), (90, 4)))
    planted = 0

    def put(sketch: Sketch, among: Sequence[int]) -> None:
        nonlocal planted
        one = rng.choice(shapes)
        able = [at for at in among if fits(one, left[names[at]]) and accepts(domains, at, one, TwinCapacity.NOW)]
        if able and planted < most:
            at = names[rng.choice(able)]
            left[at] = less(left[at], one)
            sketch.leaves.append(Leaf(one, at))
            planted += 1

    def grow(sketch: Sketch, among: Sequence[int], levels: Sequence[str]) -> None:
        for _ in range(rng.randint(0 if levels else 1, crowd) if sketch.level else rng.choice((0, 0, 1))):
            put(sketch, among)
        for _ in range(rng.randint(0, 3) if levels else 0):
            skipped = rng.randrange(len(levels))
            level = levels[skipped]
            group = Sketch(level, required=chance(rng, required))
            choices = sorted({at for node in among if (at := home(domains, node, level)) is not None})
            within: Sequence[int] = among
            if choices and (group.required or chance(rng, 30)):
                chosen = rng.choice(choices)
                within = [node for node in among if home(domains, node, level) == chosen]
            if choices or not group.required:
                sketch.groups.append(group)
                grow(group, within, levels[skipped + 1 :])

    root = Sketch()
    everywhere = range(len(names))
    for _ in range(12):
        grow(root, everywhere, topology.names)
        if planted >= most:
            break
    if not planted:
        root.leaves.append(Leaf(rng.choice(shapes)))
    return root, left


def fill_up(rng: Random, left: Mapping[str, Mapping[str, int]], *, daemon: bool) -> list[Pod]:
    """Return pods that hold most of what is left, so that counting alone decides little."""
    slack = rng.choice((0, 0, 10, 40))
    return [
        Pod(f"p-{name}", name, {GPU: free[GPU]}, "other", daemon=daemon and not chance(rng, 10))
        for name, free in left.items()
        if free[GPU] and free[PODS] and not chance(rng, slack)
    ]


def spoil(rng: Random, root: Sketch, nodes: list[Node], pods: list[Pod]) -> tuple[list[Node], list[Pod]]:
    """Make one small change that may or may not take the last placement away."""
    full = [sketch for sketch in root.walk() if sketch.leaves]
    sketch = rng.choice(full)
    index = rng.randrange(len(sketch.leaves))
    leaf = sketch.leaves[index]
    way = rng.choice(("grow", "add", "hold", "node", "demand", "move", "trade", "trade"))
    if way == "grow":
        sketch.leaves[index] = Leaf(_grown(leaf.shape), leaf.node)
    elif way == "add":
        sketch.leaves.append(Leaf(leaf.shape))
    elif way == "hold":
        pods = [*pods, Pod("p-late", rng.choice(nodes).name, {GPU: 1}, "other", daemon=chance(rng, 50))]
    elif way == "node":
        at = rng.randrange(len(nodes))
        one = nodes[at]
        changed = rng.choice((replace(one, cordoned=True), replace(one, ready=False), replace(one, taints=(RESERVED,))))
        nodes = [*nodes[:at], changed, *nodes[at + 1 :]]
    elif way == "demand":
        for group in root.walk():
            group.required = True
    elif way == "move":
        rng.choice(list(root.walk())).leaves.append(sketch.leaves.pop(index))
    else:
        # One task asks for more and another for less: the totals stay, the packing may not.
        other = rng.choice(full)
        at = rng.randrange(len(other.leaves))
        if other.leaves[at].shape.amount(GPU) > 1:
            other.leaves[at] = Leaf(_grown(other.leaves[at].shape, -1), other.leaves[at].node)
            sketch.leaves[index] = Leaf(_grown(sketch.leaves[index].shape), leaf.node)
    return nodes, pods


def _grown(one: Shape, by: int = 1) -> Shape:
    """Return a shape that asks for more GPUs, or fewer."""
    rest = [(name, amount) for name, amount in one.requests if name != GPU]
    return replace(one, requests=tuple(sorted((*rest, *shape(one.amount(GPU) + by).requests))))
