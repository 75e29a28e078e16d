"""Random worlds: a cluster, a gang and a question, reproducible from a seed.

*Planted* worlds start from a placement, fill up what it leaves free, and are then spoilt or not, so that about half
of them are feasible and few are decided by counting. *Scattered* and *ruled* ones are drawn without looking. The
families in `hard` each have one trap. *Resumed* ones have equal racks and tasks that already run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

from hypothesis import strategies as st

from coterie.gang.rules import RequestedTask, TaskRequirement, build, requirement_faults
from coterie.gang.tree import Gang, Path, Shape
from coterie.topology.cluster import GPU, Cluster, Member, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.placement.twin import TwinCapacity
from tests.property.worlds import hard
from tests.property.worlds.pieces import (
    LARGE,
    SMALL,
    TINY,
    Leaf,
    Size,
    Sketch,
    assemble,
    chance,
    shape,
    some_nodes,
    some_shapes,
    some_topology,
    with_quirks,
)
from tests.property.worlds.planted import fill_up, plant, spoil
from tests.property.worlds.resumed import resumed


@dataclass(frozen=True)
class EngineQuestion:
    """One question for the engine, as plain values."""

    name: str
    topology: Topology
    nodes: tuple[Node, ...]
    gang: Gang
    pods: tuple[Pod, ...] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
    room: TwinCapacity = TwinCapacity.NOW

    @cached_property
    def domains(self) -> Domains:
        """The cluster seen through the topology."""
        return Domains.of(Cluster.of(self.nodes, self.pods), self.topology)

    def __str__(self) -> str:
        lines = [f"{self.name}: levels {', '.join(self.topology.names)}; asked of the cluster {self.room.value}"]
        short = {level.label: level.name for level in self.topology.levels}
        for node in self.nodes:
            labels = {short.get(label, label): value for label, value in node.labels.items()}
            state = [*(["cordoned"] if node.cordoned else []), *([] if node.ready else ["not ready"]), *node.taints]
            lines.append(f"  {node.name} {labels} {dict(node.allocatable)} {state or ''}".rstrip())
        lines.extend(
            f"  pod {pod.name} on {pod.node} {dict(pod.requests)}{' daemon' if pod.daemon else ''}" for pod in self.pods
        )
        lines.extend(f"  {task.name} {_brief(task.shape)}" for task in self.gang.tasks)
        for group in self.gang.walk():
            kind = "required" if group.required else "preferred"
            lines.append(f"  {'/'.join(f'{level}:{name}' for level, name in group.path)} {kind}")
            lines.extend(f"    {task.name} {_brief(task.shape)}" for task in group.tasks)
        if self.anchors:
            lines.append(f"  anchors {dict(self.anchors)}")
        return "\n".join(lines)


def _brief(one: Shape) -> str:
    """Return what a shape asks for, without the parts that it leaves empty."""
    picky = {
        "selector": one.selector,
        "tolerations": one.tolerations,
        "affinity": one.affinity,
        "excluded": sorted(one.excluded),
    }
    return " ".join([str(dict(one.requests)), *(f"{name}={value}" for name, value in picky.items() if value)])


def planted(rng: Random, size: Size) -> EngineQuestion:
    """Return a world that had a placement before it was filled up and, more often than not, spoilt."""
    topology = some_topology(rng, size)
    nodes = with_quirks(rng, some_nodes(rng, size, topology), topology)
    root, left = plant(rng, size, topology, nodes, some_shapes(rng, nodes))
    room = TwinCapacity.EMPTY if chance(rng, 15) else TwinCapacity.NOW
    pods = fill_up(rng, left, daemon=room is TwinCapacity.EMPTY)
    anchored = room is TwinCapacity.NOW and chance(rng, 25)
    for _ in range(rng.choice((0, 1, 2, 3))):
        nodes, pods = spoil(rng, root, nodes, pods)
    gang, where = assemble(root)
    anchors = {task: node for task, node in where.items() if chance(rng, 30)} if anchored else {}
    return _with_anchors(EngineQuestion("planted", topology, tuple(nodes), gang, tuple(pods), {}, room), anchors)


def scattered(rng: Random, size: Size) -> EngineQuestion:
    """Return a world drawn without looking: any tree, any load, now and then anchors that contradict each other."""
    topology = some_topology(rng, size)
    nodes = with_quirks(rng, some_nodes(rng, size, topology), topology)
    shapes = some_shapes(rng, nodes)
    root = Sketch(leaves=[Leaf(rng.choice(shapes)) for _ in range(rng.choice((0, 0, 1, 3)))])
    hopeful = chance(rng, 60)
    for _ in range(rng.randint(1, size.tasks - len(root.leaves))):
        at = root
        for level in topology.names:
            if chance(rng, 45):
                at = _child(rng, at, level, required=15 if hopeful else 55, fresh=20)
        at.leaves.append(Leaf(rng.choice(shapes)))
    pods = [
        Pod(f"p{index}", rng.choice(nodes).name, {GPU: rng.randint(0, 4)}, "other", daemon=chance(rng, 30))
        for index in range(rng.choice((0, 0, 2, 6)))
    ]
    gang, _ = assemble(root)
    world = EngineQuestion("scattered", topology, tuple(nodes), gang, tuple(pods))
    if chance(rng, 15):
        return replace(world, room=TwinCapacity.EMPTY)
    anchors = {task.name: rng.choice(nodes).name for task in gang.all_tasks() if chance(rng, 15)}
    return _with_anchors(world, anchors) if chance(rng, 25) else world


def contended(rng: Random, size: Size) -> EngineQuestion:
    """Return a world of preferences that cannot all be met: small nodes, a high load, few groups, few required."""
    topology = some_topology(rng, size)
    size = replace(size, nodes=max(4, size.tasks * 2 // 3), branches=(2, 2, 3, 4))
    large = rng.choice((1, 2, 3))
    nodes = [
        replace(one, allocatable={**one.allocatable, GPU: rng.randint(1, large)})
        for one in some_nodes(rng, size, topology)
    ]
    load = sum(one.allocatable[GPU] for one in nodes) * rng.randint(70, 100) // 100
    shapes = [shape(gpu=1), shape(gpu=rng.randint(1, large))]
    root = Sketch()
    while root.size() < size.tasks and (load > 0 or not root.size()):
        at = root
        for level in topology.names:
            if chance(rng, 80):
                at = _child(rng, at, level, required=8, fresh=7)
        at.leaves.append(Leaf(rng.choice(shapes)))
        load -= at.leaves[-1].shape.amount(GPU)
    if chance(rng, 30):
        nodes = with_quirks(rng, nodes, topology)
    return EngineQuestion("contended", topology, tuple(nodes), assemble(root)[0])


def layered(rng: Random, size: Size) -> EngineQuestion:
    """Return a world whose groups may have groups of their own level inside them."""
    topology = some_topology(rng, size)
    nodes = with_quirks(rng, some_nodes(rng, size, topology), topology)
    shapes = some_shapes(rng, nodes)
    root = Sketch()
    for _ in range(rng.randint(1, size.tasks)):
        at = root
        for level in (level for level in topology.names for _ in range(2)):
            if chance(rng, 45):
                at = _child(rng, at, level, required=40, fresh=25)
        at.leaves.append(Leaf(rng.choice(shapes)))
    return EngineQuestion("layered", topology, tuple(nodes), assemble(root)[0])


def _child(rng: Random, sketch: Sketch, level: str, *, required: int, fresh: int) -> Sketch:
    """Return a group of this level below a sketch: one that is there, or a new one."""
    there = [group for group in sketch.groups if group.level == level]
    if there and not chance(rng, fresh):
        return rng.choice(there)
    sketch.groups.append(Sketch(level, required=chance(rng, required)))
    return sketch.groups[-1]


def ruled(rng: Random, size: Size) -> EngineQuestion:
    """Return a world whose tree came through the rules: one set of keys, groups told apart by their names."""
    topology = some_topology(rng, size)
    nodes = with_quirks(rng, some_nodes(rng, size, topology), topology)
    shapes = some_shapes(rng, nodes)[:2]
    keys = sorted(rng.sample(topology.names, rng.randint(1, len(topology.names))), key=topology.index)
    names = {key: [f"{key}-{index}" for index in range(rng.choice((1, 1, 2, 4)))] for key in keys}
    kinds: dict[Path, bool] = {}
    required = rng.choice((5, 20, 60))
    asked = []
    for index in range(rng.randint(1, size.tasks)):
        path: Path = ()
        wants = []
        for key in keys:
            path = (*path, (key, rng.choice(names[key])))
            wants.append(TaskRequirement(key, path[-1][1], kinds.setdefault(path, chance(rng, required))))
        rng.shuffle(wants)
        asked.append(RequestedTask(f"t{index}", rng.choice(shapes), () if chance(rng, 10) else tuple(wants)))
    if faults := requirement_faults([asked], topology):
        raise AssertionError(faults)
    return EngineQuestion("ruled", topology, tuple(nodes), build("gang", asked, topology))


def _with_anchors(world: EngineQuestion, anchors: Mapping[str, str]) -> EngineQuestion:
    """Return the world with these tasks running already, each as a pod that holds what it asks for."""
    running = tuple(
        Pod(
            f"gang-{task.name}",
            anchors[task.name],
            dict(task.shape.requests),
            "gang",
            member=Member("w", "g", task.name),
        )
        for task in world.gang.all_tasks()
        if task.name in anchors
    )
    return replace(world, pods=(*world.pods, *running), anchors=anchors)


def _trap(trap: Callable[[Random], hard.Trap]) -> Callable[[Random], EngineQuestion]:
    """Return a family of worlds from a hard one, whose parts are plain nodes and a sketch."""

    def make(rng: Random) -> EngineQuestion:
        topology, nodes, root = trap(rng)
        gang, _ = assemble(root)
        return EngineQuestion(trap.__name__, topology, tuple(nodes), gang)

    return make


def _resumed(rng: Random) -> EngineQuestion:
    """Return a world of equal racks in which some tasks already run."""
    topology, nodes, root = resumed(rng)
    gang, where = assemble(root)
    return _with_anchors(EngineQuestion("resumed", topology, tuple(nodes), gang), where)


FAMILIES: Mapping[str, Callable[[Random], EngineQuestion]] = {
    "planted": lambda rng: planted(rng, LARGE),
    "planted_small": lambda rng: planted(rng, SMALL),
    "scattered": lambda rng: scattered(rng, LARGE),
    "scattered_small": lambda rng: scattered(rng, SMALL),
    "ruled": lambda rng: ruled(rng, LARGE),
    "contended": lambda rng: contended(rng, LARGE),
    "layered": lambda rng: layered(rng, LARGE),
    **{trap.__name__: _trap(trap) for trap in hard.TRAPS},
    "resumed": _resumed,
}


def world(seed: int, family: str = "") -> EngineQuestion:
    """Return the world of a seed, of one family; where none is named, families take turns."""
    family = family or tuple(FAMILIES)[seed % len(FAMILIES)]
    made = FAMILIES[family](Random(f"{family} {seed}"))  # noqa: S311 - worlds are drawn, not secrets
    return replace(made, name=f"{family} {seed}")


def tiny(rng: Random) -> EngineQuestion:
    """Return a world small enough to enumerate."""
    return rng.choice((planted, scattered, ruled, contended, layered))(rng, TINY)


def tiny_worlds() -> st.SearchStrategy[EngineQuestion]:
    """Return worlds small enough to enumerate, as hypothesis draws and shrinks them."""
    return st.randoms(use_true_random=False).map(tiny)


def small_worlds() -> st.SearchStrategy[EngineQuestion]:
    """Return worlds of moderate size, as hypothesis draws and shrinks them."""
    return st.randoms(use_true_random=False).map(
        lambda rng: rng.choice((planted, scattered, ruled, contended, layered))(rng, SMALL)
    )
