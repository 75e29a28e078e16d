"""The comparison of engine and solver on one world, also with other names and in another order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from coterie.gang.tree import Gang, Group
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from tests.placement import twin
from tests.placement.twin import TwinCapacity
from tests.property.laws import renamed, reordered
from tests.property.oracle import GaveUpError, optimum
from tests.property.worlds.random_worlds import EngineQuestion


@dataclass(frozen=True)
class Verdict:
    """The verdict about one world: the truth, the engine's errors, and its claims left unproved."""

    name: str
    feasible: bool
    wrong: tuple[str, ...] = ()
    unproved: str = ""
    steps: int = 0
    seconds: float = 0.0


def answer(world: EngineQuestion, budget: int = DEFAULT_BUDGET) -> Found | NoPlacement:
    """Ask the engine."""
    capacity = Capacity.now(world.domains) if world.room is TwinCapacity.NOW else Capacity.empty(world.domains)
    return place(world.gang, capacity, anchors=world.anchors, budget=budget)


def judge(world: EngineQuestion, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Compare the engine's answer with the solver's; an answer without proof claims nothing, and is told apart."""
    try:
        truth = optimum(world.gang, world.domains, world.anchors, world.room)
    except GaveUpError as failure:
        return Verdict(world.name, feasible=False, unproved=f"the solver gave up: {failure}")
    begun = time.perf_counter()
    try:
        given = answer(world, budget)
    except Exception as failure:  # noqa: BLE001 - whatever the engine raises is a finding about this world
        return Verdict(world.name, truth is not None, (f"the engine raised {failure!r}",))
    seconds = time.perf_counter() - begun
    return Verdict(
        world.name,
        feasible=truth is not None,
        wrong=(*_faults(world, truth, given), *_broken_laws(world, given, budget)),
        unproved=_unproved(world, truth, given),
        steps=given.steps,
        seconds=seconds,
    )


def _broken_laws(world: EngineQuestion, given: Found | NoPlacement, budget: int) -> Iterator[str]:
    """Yield where other names or another order change the verdict or the cost; what is not proved breaks no law."""
    rng = Random(world.name)  # noqa: S311 - worlds are drawn, not secrets
    for word, change in (("renamed", renamed), ("reordered", reordered)):
        again = answer(change(rng, world), budget)
        if claim(again) != claim(given) and None not in {claim(again), claim(given)}:
            yield f"{word}: {claim(given)} became {claim(again)}"


def claim(given: Found | NoPlacement) -> str | None:
    """Return what an answer claims, as far as it is proved: nothing, where it is not."""
    if isinstance(given, NoPlacement):
        return "absent" if given.proved else None
    return f"placed at {dict(given.extra)}" if given.optimal else None


def _faults(world: EngineQuestion, truth: twin.Vector | None, given: Found | NoPlacement) -> Iterator[str]:
    if isinstance(given, NoPlacement):
        if given.proved and truth is not None:
            yield f"said to be absent, but costs {truth}"
        return
    if truth is None:
        yield "placed what does not fit"
    yield from twin.verify(world.gang, world.domains, given, world.anchors, world.room)
    cost = twin.vector(world.domains, given.extra)
    if truth is not None and (cost < truth or (given.optimal and cost != truth)):
        yield f"costs {cost}, the best is {truth}"


def _unproved(world: EngineQuestion, truth: twin.Vector | None, given: Found | NoPlacement) -> str:
    if isinstance(given, NoPlacement):
        return "" if given.proved else f"undecided after {given.steps} steps, the truth is {truth}"
    if given.optimal:
        return ""
    cost = twin.vector(world.domains, given.extra)
    return f"not proved best after {given.steps} steps: costs {cost}, the best is {truth}"


def shrunk(world: EngineQuestion, verdict: Verdict) -> EngineQuestion:
    """Return a smaller world of the same verdict: tasks, nodes, pods and levels go while it stays wrong.

    The budget is cut as well, so that smaller worlds are not the slow ones.
    """
    budget = DEFAULT_BUDGET // 20 if verdict.unproved else max(1000, 2 * verdict.steps)

    def still(one: EngineQuestion) -> bool:
        again = judge(one, budget)
        return bool(again.wrong) and bool(again.unproved) == bool(verdict.unproved)

    while (smaller := next((one for one in _smaller(world) if still(one)), None)) is not None:
        world = smaller
    return world


def _smaller(world: EngineQuestion) -> Iterator[EngineQuestion]:
    """Yield the world with one thing less."""
    for node in world.nodes:
        if node.name not in world.anchors.values() and len(world.nodes) > 1:
            yield replace(world, nodes=tuple(one for one in world.nodes if one != node))
    for pod in world.pods:
        if pod.member is None:
            yield replace(world, pods=tuple(one for one in world.pods if one != pod))
    for task in world.gang.all_tasks():
        if task.name not in world.anchors and len(world.gang.all_tasks()) > 1:
            yield replace(world, gang=without_task(world.gang, task.name))
    for index in range(len(world.topology.levels)):
        rest = [level for at, level in enumerate(world.topology.levels) if at != index]
        if rest and all(group.level != world.topology.names[index] for group in world.gang.walk()):
            yield replace(world, topology=replace(world.topology, levels=tuple(rest)))
    for node in world.nodes:
        for plain in (replace(node, taints=()), replace(node, cordoned=False), replace(node, ready=True)):
            if plain != node:
                yield replace(world, nodes=tuple(plain if one == node else one for one in world.nodes))


def without_task(gang: Gang, name: str) -> Gang:
    """Return the gang without a task, and without the groups that only held this one."""

    def kept(groups: tuple[Group, ...]) -> tuple[Group, ...]:
        smaller = (
            replace(one, groups=kept(one.groups), tasks=tuple(task for task in one.tasks if task.name != name))
            for one in groups
        )
        return tuple(one for one in smaller if one.groups or one.tasks)

    return replace(gang, groups=kept(gang.groups), tasks=tuple(task for task in gang.tasks if task.name != name))
