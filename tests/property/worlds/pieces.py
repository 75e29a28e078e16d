"""The parts of random worlds: levels, nodes, shapes, and the sketch of a gang before its tasks have names.

Every function takes a `random.Random`, so that worlds are reproducible from a seed, and hypothesis can supply one as
well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from coterie.gang.tree import Expression, Gang, Group, Path, Shape, Task, Toleration
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, Node, Taint
from coterie.topology.levels import Topology

LEVELS = (
    ("zone", "topology.kubernetes.io/zone"),
    ("spine", "network.example.com/spine"),
    ("rack", "topology.kubernetes.io/rack"),
    ("clique", "nvidia.com/gpu.clique"),
)
KIND = "node.example.com/kind"
GENERATION = "node.example.com/generation"
GIB = 1 << 30
GPUS = (1, 2, 3, 4, 5, 8)
RESERVED = Taint("example.com/reserved", "team")
UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
SOFT = Taint("example.com/slow", "", "PreferNoSchedule")
TOLERATIONS = (
    Toleration("example.com/reserved", "Exists"),
    Toleration("example.com/reserved", "Equal", "team", "NoSchedule"),
    Toleration("example.com/reserved", "Equal", "others"),
    Toleration("", "Exists", "", "NoExecute"),
    Toleration("", "Exists"),
)
AFFINITIES = (
    Expression(KIND, "In", ("fast",)),
    Expression(KIND, "NotIn", ("fast",)),
    Expression(KIND, "Exists"),
    Expression(KIND, "DoesNotExist"),
    Expression(GENERATION, "Gt", ("3",)),
    Expression(GENERATION, "Lt", ("4",)),
)


@dataclass(frozen=True)
class Size:
    """The limits of a world's size."""

    nodes: int
    tasks: int
    levels: int = 4
    gpus: tuple[int, ...] = GPUS
    branches: tuple[int, ...] = (1, 2, 2, 3, 4)


TINY = Size(nodes=5, tasks=5, levels=3, gpus=(1, 1, 2, 3, 4))
SMALL = Size(nodes=14, tasks=12)
LARGE = Size(nodes=40, tasks=24)


@dataclass(frozen=True)
class Leaf:
    """One task of a sketch, and the node it was planted on, if it was."""

    shape: Shape
    node: str = ""


@dataclass
class Sketch:
    """A group while it is being drawn up; the outermost one is the gang itself and has no level."""

    level: str = ""
    required: bool = True
    groups: list[Sketch] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    def walk(self) -> Iterator[Sketch]:
        """Yield this sketch and all below it."""
        yield self
        for group in self.groups:
            yield from group.walk()

    def size(self) -> int:
        """Return how many tasks there are at or below this sketch."""
        return sum(len(one.leaves) for one in self.walk())


def chance(rng: Random, percent: int) -> bool:
    """Return true this often."""
    return rng.randrange(100) < percent


def shape(gpu: int = 0, cpu: int = 0, memory: int = 0) -> Shape:
    """Return a plain shape: whole GPUs, thousandths of a cpu, bytes."""
    wants = {CPU: cpu, MEMORY: memory, GPU: gpu}
    return Shape(requests=tuple(sorted((name, amount) for name, amount in wants.items() if amount)))


def node(name: str, homes: Mapping[str, str], gpu: int = 0, cpu: int = 0, memory: int = 0) -> Node:
    """Return a plain node, its labels given by level name."""
    labels = {label: homes[level] for level, label in LEVELS if level in homes}
    return Node(name, labels, {GPU: gpu, CPU: cpu, MEMORY: memory})


def some_topology(rng: Random, size: Size) -> Topology:
    """Return one to four of the levels, in their order."""
    count = rng.randint(1, size.levels)
    kept = sorted(rng.sample(range(len(LEVELS)), count))
    return Topology.of(*(LEVELS[index] for index in kept))


def some_nodes(rng: Random, size: Size, topology: Topology) -> list[Node]:
    """Return nodes spread over a tree of domains; racks of different zones bear the same names."""
    homes: list[tuple[str, ...]] = [()]
    for level in topology.names:
        homes = [(*home, f"{level}-{index}") for home in homes for index in range(rng.choice(size.branches))]
    per_home = max(1, min(6, size.nodes // len(homes)))
    gpus = rng.sample(size.gpus, rng.randint(1, 3))
    plenty = chance(rng, 60)
    nodes: list[Node] = []
    for home in homes:
        for _ in range(rng.randint(1, per_home)):
            if len(nodes) < size.nodes:
                cpu = 64_000 if plenty else rng.randint(2, 12) * 1000
                memory = 512 * GIB if plenty else rng.randint(2, 12) * GIB
                places = dict(zip(topology.names, home, strict=True))
                nodes.append(node(f"n{len(nodes)}", places, rng.choice(gpus), cpu, memory))
    return nodes


def with_quirks(rng: Random, nodes: Sequence[Node], topology: Topology) -> list[Node]:
    """Return the nodes with a few cordons, taints, lost labels, pod limits and labels that selectors use."""
    often = rng.choice((0, 5, 15))
    return [_quirky(rng, one, topology, often) for one in nodes]


def _quirky(rng: Random, one: Node, topology: Topology, often: int) -> Node:
    labels = dict(one.labels)
    if chance(rng, often):
        label = rng.choice(topology.levels).label
        labels[label] = rng.choice(("", "00000000-0000-0000-0000-000000000000"))
        if chance(rng, 50):
            del labels[label]
    if chance(rng, often * 2):
        labels[KIND] = rng.choice(("fast", "slow", ""))
    if chance(rng, often * 2):
        labels[GENERATION] = rng.choice(("3", "4", "10", "new"))
    allocatable = dict(one.allocatable)
    if chance(rng, often):
        allocatable[PODS] = rng.randint(0, 4)
    taints = tuple(taint for taint in (RESERVED, UNREACHABLE, SOFT) if chance(rng, often))
    return replace(
        one,
        labels=labels,
        allocatable=allocatable,
        taints=taints,
        cordoned=chance(rng, often // 2),
        ready=not chance(rng, often // 2),
    )


def some_shapes(rng: Random, nodes: Sequence[Node]) -> list[Shape]:
    """Return a few shapes, most of them asking for GPUs alone; the pickier ones come with selectors and the like."""
    picky = chance(rng, 30)
    return [_some_shape(rng, nodes, picky=picky) for _ in range(rng.choice((1, 1, 2, 2, 3, 4)))]


def _some_shape(rng: Random, nodes: Sequence[Node], *, picky: bool) -> Shape:
    largest = max(one.allocatable[GPU] for one in nodes)
    gpu = min(rng.choice((*GPUS[:4], 1, 2, 0, rng.choice(GPUS))), largest if chance(rng, 95) else largest + 1)
    plain = shape(
        gpu,
        cpu=rng.randint(1, 6) * 500 if gpu == 0 or chance(rng, 40) else 0,
        memory=rng.randint(1, 4) * GIB if chance(rng, 30) else 0,
    )
    if not picky:
        return plain
    return replace(
        plain,
        selector=((KIND, "fast"),) if chance(rng, 15) else (),
        tolerations=tuple(one for one in TOLERATIONS if chance(rng, 20)),
        affinity=tuple((one,) for one in AFFINITIES if chance(rng, 15)),
        excluded=frozenset(one.name for one in nodes if chance(rng, 10)),
    )


def assemble(root: Sketch) -> tuple[Gang, dict[str, str]]:
    """Name the tasks and groups of a sketch; return the gang and where its planted tasks stand."""
    where: dict[str, str] = {}
    ranks = iter(range(root.size()))

    def tasks(sketch: Sketch) -> tuple[Task, ...]:
        made = tuple(Task(f"t{rank}", leaf.shape, rank) for leaf, rank in zip(sketch.leaves, ranks, strict=False))
        where.update((task.name, leaf.node) for task, leaf in zip(made, sketch.leaves, strict=True) if leaf.node)
        return made

    def groups(sketch: Sketch, above: Path) -> tuple[Group, ...]:
        made = []
        for index, one in enumerate(one for one in sketch.groups if one.size()):
            path = (*above, (one.level, f"g{index}"))
            own = tasks(one)
            made.append(Group(path, one.required, groups(one, path), own))
        return tuple(made)

    own = tasks(root)
    return Gang("gang", groups(root, ()), own), where
