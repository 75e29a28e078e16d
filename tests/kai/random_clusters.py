"""Small random clusters, each with one gang, that share one real cluster without interference.

Every case has nodes, labels and a topology of its own, and its pods may only use its own nodes. KAI builds a tree for
each topology from the nodes that have its labels, so no case sees another's domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from coterie.gang.tree import Gang, Group, Path, Shape, Task, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, STORAGE, Cluster, Node, Pod, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

GIB = 1 << 30
OWN = "case.example.com/number"
RESERVED = Taint("case.example.com/reserved", "", "NoSchedule")
_VALUES = ("a", "b", "c10", "c9", "B", "d-1")


@dataclass(frozen=True)
class Case:
    """A cluster, what already runs on it, and a gang to place.

    A `bare` one is handed over without the preferred levels that Coterie adds to required ones.
    """

    number: int
    topology: Topology
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    gang: Gang
    bare: bool

    def __str__(self) -> str:
        lines = [f"case {self.number}: levels {', '.join(self.topology.names)}{', bare' * self.bare}"]
        for node in self.nodes:
            homes = [node.labels.get(level.label, "-") for level in self.topology.levels]
            marks = ["cordoned"] * node.cordoned + ["reserved"] * bool(node.taints)
            held = [dict(pod.requests) for pod in self.pods if pod.node == node.name]
            lines.append(f"  {node.name} {'/'.join(homes)} {dict(node.allocatable)} {' '.join(marks)} {held or ''}")
        for group in self.gang.walk():
            kind = "required" if group.required else "preferred"
            lines.append(f"  {'/'.join(':'.join(step) for step in group.path)} {kind}: {_listed(group.tasks)}")
        lines.append(f"  free: {_listed(self.gang.tasks)}")
        return "\n".join(lines)


def case(number: int) -> Case:
    """Return the case of a number, always the same: most often one that fits, and often barely."""
    rng = Random(number)  # noqa: S311 - a seed makes a case
    made = _case(rng, number)
    for _ in range(rng.choice((0, 10, 20))):
        if found(made):
            break
        made = _case(rng, number)
    return _tightened(rng, made) if rng.random() < 0.6 else made


def cluster(one: Case) -> Cluster:
    """Return the cluster of a case."""
    return Cluster.of(one.nodes, one.pods)


def found(one: Case) -> Found | None:
    """Return the place that the engine finds for the gang, if it fits."""
    answer = place(one.gang, Capacity.now(Domains.of(cluster(one), one.topology)))
    return answer if isinstance(answer, Found) else None


def _tightened(rng: Random, one: Case) -> Case:
    """Return a case that fits with most of the GPUs gone that it does not need."""
    answer = found(one)
    if answer is None:
        return one
    left = {node.name: node.allocatable[GPU] for node in one.nodes}
    for pod in one.pods:
        left[pod.node] -= pod.requests.get(GPU, 0)
    for task in one.gang.all_tasks():
        left[answer.nodes[task.name]] -= task.shape.amount(GPU)
    gone = {name: gpus if rng.random() < 0.8 else rng.randint(0, gpus) for name, gpus in left.items()}
    nodes = tuple(
        replace(node, allocatable={**node.allocatable, GPU: node.allocatable[GPU] - gone[node.name]})
        for node in one.nodes
    )
    return replace(one, nodes=nodes)


def _case(rng: Random, number: int) -> Case:
    names = ("zone", "spine", "rack")[: rng.randint(1, 3)]
    topology = Topology.of(*((name, f"case{number}.example.com/{name}") for name in names))
    nodes = tuple(_many_racks(rng, number, topology) if rng.random() < 0.05 else _few(rng, number, topology))
    gang = _gang(rng, number, topology, 3 if len(nodes) > 8 else 1)
    return Case(number, topology, nodes, tuple(_pods(rng, nodes)), gang, rng.random() < 0.2)


def _few(rng: Random, number: int, topology: Topology) -> Iterator[Node]:
    breadth = rng.randint(1, 3)
    gpus = rng.sample((2, 4, 8), rng.randint(1, 3))
    scarce = rng.random() < 0.4
    values = [rng.sample(_VALUES, breadth) for _ in topology.levels]
    for letter in rng.sample("abcdefghijklmnop", rng.randint(2, 8)):
        labels = {level.label: rng.choice(known) for level, known in zip(topology.levels, values, strict=True)}
        if rng.random() < 0.05:
            labels.popitem()
        yield Node(
            f"case{number}-{letter}",
            {**labels, OWN: str(number)},
            {
                GPU: 0 if rng.random() < 0.07 else rng.choice(gpus),
                CPU: rng.randint(4, 40) * 500 if scarce else 64_000,
                MEMORY: (rng.randint(4, 32) if scarce else 256) * GIB,
                STORAGE: rng.randint(1, 8) * GIB,
                PODS: rng.randint(1, 4) if rng.random() < 0.1 else 110,
            },
            taints=(RESERVED,) if rng.random() < 0.06 else (),
            cordoned=rng.random() < 0.06,
        )


def _many_racks(rng: Random, number: int, topology: Topology) -> Iterator[Node]:
    """Yield nodes in more domains than KAI has scores for."""
    for index in range(rng.randint(12, 24)):
        labels = {level.label: f"v{index // 2**depth}" for depth, level in enumerate(reversed(topology.levels))}
        room = {GPU: rng.choice((1, 2, 4)), CPU: 64_000, MEMORY: 256 * GIB, STORAGE: GIB, PODS: 110}
        yield Node(f"case{number}-{index}", {**labels, OWN: str(number)}, room)


def _pods(rng: Random, nodes: tuple[Node, ...]) -> Iterator[Pod]:
    for node in nodes:
        if rng.random() < 0.3:
            wanted = {GPU: rng.randint(0, node.allocatable[GPU]), CPU: rng.randint(1, 4) * 250}
            yield Pod(f"default/{node.name}-held", node.name, {name: one for name, one in wanted.items() if one})


def _gang(rng: Random, number: int, topology: Topology, times: int) -> Gang:
    shapes = [_shape(rng, number) for _ in range(rng.choice((1, 2, 3)))]
    elastic = rng.random() < 0.2
    ranks = count()

    def tasks(most: int) -> tuple[Task, ...]:
        made = [Task(f"t{next(ranks)}", rng.choice(shapes)) for _ in range(rng.randint(1, most * times))]
        # The first is always needed.
        spare = [elastic and index > 0 and rng.random() < 0.5 for index in range(len(made))]
        return tuple(
            replace(task, rank=int(task.name[1:]), needed=not free) for task, free in zip(made, spare, strict=True)
        )

    def group(above: Path, least: int, name: str) -> Group:
        level = rng.randrange(least, len(topology.levels))
        path = (*above, (topology.names[level], name))
        finer = level + 1 < len(topology.levels)
        below = rng.choice((0, 0, 1, 2, 3)) if finer else 0
        groups = tuple(group(path, level + 1, f"{name}{index}") for index in range(below))
        loose = tasks(3 if groups else 5) if not groups or rng.random() < 0.3 else ()
        return Group(path, rng.random() < 0.65, groups, loose)

    groups = tuple(group((), 0, name) for name in "xyz"[: rng.choice((0, 1, 1, 1, 2, 2, 3))])
    return Gang("g", groups, tasks(4) if not groups or rng.random() < 0.15 else ())


def _shape(rng: Random, number: int) -> Shape:
    if rng.random() < 0.03:
        return Shape(selector=((OWN, str(number)),))
    wanted = {
        GPU: rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 8)),
        CPU: rng.choice((500, 1000, 1000, 1000, 2500, 4000)),
        MEMORY: rng.choice((0, 0, 1, 4)) * GIB,
        STORAGE: rng.choice((0, 0, 0, 0, 0, 1)) * GIB,
    }
    requests = tuple(sorted((name, amount) for name, amount in wanted.items() if amount))
    tolerations = (Toleration(RESERVED.key, "Exists"),) if rng.random() < 0.5 else ()
    return Shape(requests, selector=((OWN, str(number)),), tolerations=tolerations)


def _listed(tasks: tuple[Task, ...]) -> str:
    return "; ".join(f"{task.name}{'' if task.needed else '?'} {dict(task.shape.requests)}" for task in tasks)
