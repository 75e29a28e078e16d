"""The claims of a refusal against the exact solver, and worlds in which all reasons occur."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from coterie.errors import Reason
from coterie.gang import edits
from coterie.gang.tree import Gang, Group, Path, Task
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from coterie.placement.refusal import Decision, Refusal
from coterie.topology.cluster import GPU, Pod
from tests.placement.twin import TwinCapacity
from tests.property.oracle import optimum
from tests.property.worlds.random_worlds import EngineQuestion


def decided(world: EngineQuestion) -> Decision:
    """Return the decision about a world."""
    empty = Capacity.empty(world.domains)
    return decide(
        world.gang,
        empty if world.room is TwinCapacity.EMPTY else Capacity.now(world.domains),
        empty,
        anchors=world.anchors,
    )


def shared_with_others(rng: Random, world: EngineQuestion) -> EngineQuestion:
    """Return a world with the same room, in which others hold more of some nodes: what waits may fit later."""
    held = {node.name: gpus for node in world.nodes if (gpus := rng.choice((0, 0, 1, 2, 3)))}
    nodes = (
        replace(node, allocatable={**node.allocatable, GPU: node.allocatable.get(GPU, 0) + held.get(node.name, 0)})
        for node in world.nodes
    )
    pods = (Pod(f"other-{name}", name, {GPU: gpus}, "other") for name, gpus in held.items())
    return replace(world, nodes=tuple(nodes), pods=(*world.pods, *pods))


def unfounded(world: EngineQuestion, decision: Decision) -> Iterator[str]:
    """Yield the claims of a refusal that are not true; those about the empty cluster are not looked at."""
    refusal = decision.refusal
    if refusal is None or refusal.reason is Reason.UNDECIDED:
        return
    if _feasible(world, world.gang):
        yield f"{decision.verdict}, but it fits"
    if refusal.reason is Reason.NO_CAPACITY and _feasible(world, edits.unconstrained(world.gang)):
        yield "no capacity, but there is without constraints"
    if refusal.reason is Reason.NO_DOMAIN_FITS:
        yield from _unfounded_of_one(world, refusal)
    if refusal.reason is Reason.GROUPS_CONFLICT:
        yield from _unfounded_of_several(world, refusal)


def _unfounded_of_one(world: EngineQuestion, refusal: Refusal) -> Iterator[str]:
    group = _group(world.gang, refusal.path)
    if not group.required:
        yield f"{group.path} is only preferred"
    if _feasible(world, _inside(world, edits.only(world.gang, [group]), refusal.around)):
        yield f"no domain fits, but {group.path} fits alone"
    around = refusal.around or refusal.home
    if any(near.domain[: len(around)] != around for near in refusal.best):
        yield f"{refusal.best} are not all in {around}"


def _unfounded_of_several(world: EngineQuestion, refusal: Refusal) -> Iterator[str]:
    groups = [_group(world.gang, path) for path in refusal.together]
    if len(groups) + refusal.beside < 2:
        yield "a conflict of one"
    for group in groups:
        if not _feasible(world, edits.only(world.gang, [group])):
            yield f"{group.path} does not fit alone"
    above = groups[0].path[:-1]
    parent = _group(world.gang, above) if above else None
    own: Sequence[Task] = parent.tasks if parent else world.gang.tasks
    tasks = tuple(task for task in own if refusal.beside or task.name in world.anchors)
    if parent is None:
        together = edits.only(world.gang, groups, tasks)
    else:
        running = (task for one in parent.groups if one not in groups for task in one.all_tasks())
        tasks = (*tasks, *(task for task in running if task.name in world.anchors))
        together = edits.only(world.gang, [replace(parent, groups=tuple(groups), tasks=tasks)])
    if _feasible(world, _inside(world, together, _home(world, above[:-1]))):
        yield "they fit together"


def _home(world: EngineQuestion, path: Path) -> tuple[str, ...]:
    """Return the domain in which the innermost required group on a path that runs does so."""
    for depth in range(len(path), 0, -1):
        group = _group(world.gang, path[:depth])
        nodes = {world.anchors[task.name] for task in group.all_tasks() if task.name in world.anchors}
        if group.required and nodes:
            index = world.topology.index(group.level)
            tier = world.domains.tiers[index]
            return tier.values[int(tier.of[world.domains.position[nodes.pop()]])]
    return ()


def _inside(world: EngineQuestion, gang: Gang, domain: tuple[str, ...]) -> Gang:
    """Return the gang with all nodes outside a domain excluded."""
    labels = [level.label for level in world.topology.levels][: len(domain)]
    return edits.without_nodes(
        gang, [node.name for node in world.nodes if tuple(node.labels.get(label) for label in labels) != domain]
    )


def _group(gang: Gang, path: Path) -> Group:
    return next(group for group in gang.walk() if group.path == path)


def _feasible(world: EngineQuestion, gang: Gang) -> bool:
    """Tell whether a part of the gang fits; its paths are cut to where it begins."""
    depth = min((len(group.path) - 1 for group in gang.groups), default=0)

    def rooted(group: Group) -> Group:
        return replace(group, path=group.path[depth:], groups=tuple(map(rooted, group.groups)))

    part = replace(gang, groups=tuple(map(rooted, gang.groups)))
    names = {task.name for task in part.all_tasks()}
    anchors = {task: node for task, node in world.anchors.items() if task in names}
    return optimum(part, world.domains, anchors, world.room) is not None
