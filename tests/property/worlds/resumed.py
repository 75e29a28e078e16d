"""Worlds with running tasks on equal domains: racks differ only by the tasks that run in them.

The free capacity is drawn once for a rack and holds for all racks, except the few that are then spoilt; nodes are as
large as that and their running tasks together. An engine that confuses one rack with another fails here sooner than
elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from coterie.gang.tree import Shape
from coterie.topology.cluster import CPU, GPU, Node
from coterie.topology.levels import Topology
from tests.property.worlds.pieces import LEVELS, Leaf, Sketch, chance, node, shape

Homes = tuple[str, ...]
Resumed = tuple[Topology, list[Node], Sketch]

ONE = shape(gpu=1)
TWO = shape(gpu=2)
HELPER = shape(cpu=1000)
_KEPT = ((2,), (0, 2), (0, 2), (2, 3), (0, 2, 3))
MOST_DOMAINS = 8
MOST_WAITING = 10


def resumed(rng: Random) -> Resumed:
    """Return levels, nodes and a gang whose leaves with a node already run there; their pods are yet to be made."""
    topology = Topology.of(*(LEVELS[index] for index in rng.choice(_KEPT)))
    racks = _homes(rng, topology)
    shapes = rng.choice(((ONE,), (ONE,), (ONE, TWO), (ONE, HELPER)))
    root = _gang(rng, topology, shapes)
    running = rng.choice((0, 35, 50, 65))
    profile = _profile(rng, root, len(racks), running)
    places = {(home, index): f"{'-'.join(home)}-{index}" for home in racks for index in range(len(profile))}
    if running:
        _settle(rng, root, topology, dict.fromkeys(places.values()), {name: home for (home, _), name in places.items()})
    root = _thinned(rng, root, running)
    held: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for sketch in root.walk():
        for leaf in sketch.leaves:
            for resource, amount in leaf.shape.requests if leaf.node else ():
                held[leaf.node][resource] += amount
    nodes = []
    for (home, index), name in places.items():
        gpu = max(0, profile[index] - chance(rng, 5))
        labels = dict(zip(topology.names, home, strict=True))
        nodes.append(node(name, labels, gpu + held[name][GPU], held[name][CPU] + 1000 * (HELPER in shapes and not gpu)))
    if (len(topology.names) > 1 and HELPER in shapes) or chance(rng, 10):
        nodes += _unlabelled(rng, topology, sorted({home[:-1] for home in racks}))
    return topology, nodes, root


def _homes(rng: Random, topology: Topology) -> list[Homes]:
    """Return the finest domains of a tree in which all domains of a level have the same number of parts."""
    homes: list[Homes] = [()]
    for number, level in enumerate(topology.names):
        parts = rng.randint(2, 4) if number == 0 else rng.choice((1, 2, 2, 3))
        if len(homes) * parts <= MOST_DOMAINS:
            homes = [(*home, f"{level}{index}") for home in homes for index in range(parts)]
        else:
            homes = [(*home, f"{level}0") for home in homes]
    return homes


def _gang(rng: Random, topology: Topology, shapes: Sequence[Shape]) -> Sketch:
    """Return groups of one to three tasks at any level, some inside others, required and preferred mixed."""
    root = Sketch()
    required = rng.choice((20, 50, 80))
    for _ in range(rng.randint(2, 5)):
        at = root
        for level in topology.names:
            if chance(rng, 60) or (at is root and level == topology.names[-1]):
                inside = [one for one in at.groups if one.level == level]
                if not inside or chance(rng, 70):
                    at.groups.append(Sketch(level, required=chance(rng, required)))
                    inside = at.groups[-1:]
                at = rng.choice(inside)
        at.leaves.extend(Leaf(rng.choice(shapes)) for _ in range(rng.randint(1, 3)))
    if chance(rng, 15):
        root.leaves.append(Leaf(rng.choice(shapes)))
    return root


def _profile(rng: Random, root: Sketch, racks: int, running: int) -> list[int]:
    """Return the free GPUs of each node of a rack: about as many in all as the waiting tasks will want."""
    wanted = sum(leaf.shape.amount(GPU) for sketch in root.walk() for leaf in sketch.leaves) * (100 - running) // 100
    each = max(1, -(-(wanted + rng.randint(-1, 2)) // racks))
    parts = rng.choice((1, 1, 2))
    first = rng.randint(0, each) if parts == 2 else each
    return [first, each - first][:parts]


def _settle(
    rng: Random, sketch: Sketch, topology: Topology, allowed: Mapping[str, None], homes: Mapping[str, Homes]
) -> None:
    """Choose nodes for all tasks as if all ran: those of a required group, and of most others, in one domain."""
    if sketch.level and (sketch.required or chance(rng, 70)):
        depth = topology.index(sketch.level) + 1
        chosen = homes[rng.choice(list(allowed))][:depth]
        allowed = {name: None for name in allowed if homes[name][:depth] == chosen}
    sketch.leaves = [replace(leaf, node=rng.choice(list(allowed))) for leaf in sketch.leaves]
    for group in sketch.groups:
        _settle(rng, group, topology, allowed, homes)


def _thinned(rng: Random, root: Sketch, running: int) -> Sketch:
    """Return the gang with only so many of a hundred of its tasks running; one at least waits, and not too many."""
    for sketch in root.walk():
        sketch.leaves = [leaf if chance(rng, running) else replace(leaf, node="") for leaf in sketch.leaves]
    groups = [sketch for sketch in root.walk() if sketch.leaves]
    if all(leaf.node for sketch in groups for leaf in sketch.leaves):
        groups[0].leaves[0] = replace(groups[0].leaves[0], node="")
    waiting = 0
    for sketch in groups:
        kept = []
        for leaf in sketch.leaves:
            waiting += not leaf.node
            if leaf.node or waiting <= MOST_WAITING:
                kept.append(leaf)
        sketch.leaves = kept
    return root


def _unlabelled(rng: Random, topology: Topology, parents: Sequence[Homes]) -> list[Node]:
    """Return nodes without the finest label, one in each domain above."""
    gpu = rng.choice((0, 0, 1))
    return [
        node(f"loose-{number}", dict(zip(topology.names, parent, strict=False)), gpu, 1000)
        for number, parent in enumerate(parents)
    ]
