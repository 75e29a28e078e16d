"""Worlds with other names and another order, which must get the same verdict at the same cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from coterie.gang.tree import Gang, Group, Path, Task
from coterie.topology.cluster import Node, Pod
from coterie.topology.domains import is_null
from tests.property.worlds.random_worlds import EngineQuestion

T = TypeVar("T")


def shuffled(rng: Random, things: Iterable[T]) -> list[T]:
    """Return the same things in another order."""
    listed = list(things)
    return rng.sample(listed, len(listed))


def reordered(rng: Random, world: EngineQuestion) -> EngineQuestion:
    """Return the world with nodes, pods, groups and tasks listed in another order."""
    return replace(
        world,
        nodes=tuple(shuffled(rng, world.nodes)),
        pods=tuple(shuffled(rng, world.pods)),
        gang=_reordered(rng, world.gang),
    )


def renamed(rng: Random, world: EngineQuestion) -> EngineQuestion:
    """Return the world with new names for groups, tasks, nodes and domains, which sort in another order."""
    nodes = _names(rng, "n", (one.name for one in world.nodes))
    tasks = _names(rng, "t", (task.name for task in world.gang.all_tasks()))
    domains = {
        label: _names(
            rng, "d", (value for one in world.nodes if not is_null(label, value := one.labels.get(label, "")))
        )
        for label in (level.label for level in world.topology.levels)
    }

    def moved(one: Node) -> Node:
        labels = {
            label: domains[label].get(value, value) if label in domains else value
            for label, value in one.labels.items()
        }
        return replace(one, name=nodes[one.name], labels=labels)

    def held(pod: Pod) -> Pod:
        member = replace(pod.member, task=tasks[pod.member.task]) if pod.member else None
        return replace(pod, node=nodes[pod.node], member=member)

    def task(one: Task) -> Task:
        excluded = frozenset(nodes[name] for name in one.shape.excluded)
        return replace(one, name=tasks[one.name], shape=replace(one.shape, excluded=excluded))

    def groups(some: Sequence[Group], above: Path) -> tuple[Group, ...]:
        names = _names(rng, "g", (group.path[-1][1] for group in some))
        made = []
        for group in some:
            level, name = group.path[-1]
            path = (*above, (level, names[name]))
            made.append(Group(path, group.required, groups(group.groups, path), tuple(map(task, group.tasks))))
        return tuple(made)

    gang = Gang(world.gang.name, groups(world.gang.groups, ()), tuple(map(task, world.gang.tasks)))
    return replace(
        world,
        nodes=tuple(map(moved, world.nodes)),
        pods=tuple(map(held, world.pods)),
        gang=gang,
        anchors={tasks[name]: nodes[there] for name, there in world.anchors.items()},
    )


def _names(rng: Random, mark: str, old: Iterable[str]) -> dict[str, str]:
    """Return a new name for each old one, in an order of its own."""
    known = list(dict.fromkeys(old))
    return dict(zip(known, (f"{mark}{number:03}" for number in shuffled(rng, range(len(known)))), strict=True))


def _reordered(rng: Random, gang: Gang) -> Gang:
    ranks = dict(
        zip((task.name for task in gang.all_tasks()), shuffled(rng, range(len(gang.all_tasks()))), strict=True)
    )

    def tasks(some: Sequence[Task]) -> tuple[Task, ...]:
        return tuple(replace(task, rank=ranks[task.name]) for task in shuffled(rng, some))

    def groups(some: Sequence[Group]) -> tuple[Group, ...]:
        return tuple(
            replace(group, groups=groups(group.groups), tasks=tasks(group.tasks)) for group in shuffled(rng, some)
        )

    return Gang(gang.name, groups(gang.groups), tasks(gang.tasks))
