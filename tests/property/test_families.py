"""Gangs with optional tasks and followers, against the literal rule: one after the other, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import Reason
from coterie.gang import edits
from coterie.gang.tree import Gang, Task
from coterie.placement.capacity import Capacity
from coterie.placement.family import decide_family
from coterie.placement.refusal import Decision, Verdict
from tests.placement import twin
from tests.property.worlds.random_worlds import EngineQuestion, tiny_worlds
from tests.random_examples import examples

randoms = st.randoms(use_true_random=False)
thorough = settings(max_examples=examples(150), deadline=None)


@given(tiny_worlds(), randoms)
@thorough
def test_what_is_kept_is_what_adding_one_by_one_keeps(world: EngineQuestion, rng: Random) -> None:
    gangs = _family(rng, world)
    decisions = _decided(world, gangs)
    placed = {name for decision in decisions if decision.found for name in decision.found.nodes}
    assert placed == _literally(world, gangs), f"{gangs}\n{world}"


@given(tiny_worlds(), randoms)
@thorough
def test_all_that_is_placed_keeps_every_rule_together(world: EngineQuestion, rng: Random) -> None:
    gangs = _family(rng, world)
    decisions = _decided(world, gangs)
    inside = [gang for gang, decision in zip(gangs, decisions, strict=True) if decision.found]
    nodes = {name: node for decision in decisions if decision.found for name, node in decision.found.nodes.items()}
    whole = edits.joined([edits.chosen(gang, nodes.keys()) for gang in inside]) if inside else Gang("none")
    found = next((decision.found for decision in decisions if decision.found), None)
    if found:
        together = replace(found, nodes=nodes)
        assert twin.verify(whole, world.domains, together, world.anchors, world.room) == [], f"{gangs}\n{world}"


@given(tiny_worlds(), randoms)
@thorough
def test_a_gang_is_refused_or_whole_and_followers_never_come_alone(world: EngineQuestion, rng: Random) -> None:
    gangs = _family(rng, world)
    leader, *followers = _decided(world, gangs)
    for gang, decision in zip(gangs, [leader, *followers], strict=True):
        if decision.found:
            missing = {task.name: task for task in gang.all_tasks() if task.name not in decision.found.nodes}
            assert not any(task.needed for task in missing.values())
            assert set(decision.found.left_out) == missing.keys()
        else:
            assert decision.refusal
    if not leader.found:
        assert all(one.refusal and one.refusal.reason is Reason.GANG_INCOMPLETE for one in followers)
        assert all(one.verdict is Verdict.WAITING for one in followers)


def _decided(world: EngineQuestion, gangs: Sequence[Gang]) -> list[Decision]:
    now = Capacity.now(world.domains) if world.room is twin.TwinCapacity.NOW else Capacity.empty(world.domains)
    return decide_family(gangs, now, Capacity.empty(world.domains), anchors=world.anchors)


def _family(rng: Random, world: EngineQuestion) -> list[Gang]:
    """Deal the tasks of a world's gang out to a leader and up to two followers, some of them wanted only."""
    tasks = list(world.gang.all_tasks())
    rng.shuffle(tasks)
    count = rng.randint(1, min(3, len(tasks)))
    cuts = sorted(rng.sample(range(1, len(tasks)), count - 1)) if count > 1 else []
    shares = [set(tasks[start:end]) for start, end in zip([0, *cuts], [*cuts, len(tasks)], strict=True)]
    wanted = {task.name for task in tasks if rng.random() < 0.4}

    def marked(task: Task) -> Task:
        return replace(task, needed=task.name not in wanted)

    gangs = []
    for number, share in enumerate(shares):
        part = edits._filter(world.gang, lambda task, share=share: task in share)  # type: ignore[misc]
        part = edits.mapped(part, marked)
        gangs.append(replace(part, name=f"gang-{number}", follows="gang-0" if number else ""))
    return gangs


def _literally(world: EngineQuestion, gangs: Sequence[Gang]) -> set[str]:
    """Add what may be added one by one, asking by enumeration each time."""
    leader = {task.name for task in gangs[0].all_tasks() if task.needed or task.name in world.anchors}
    if not _possible(world, gangs, leader):
        return set()
    kept = set(leader)
    for number, gang in enumerate(gangs):
        for unit in _steps(gang, number, world):
            if number and not unit[1] and not {task.name for task in gang.all_tasks() if task.needed} <= kept:
                continue  # without its needed tasks a follower has no wanted ones
            if _possible(world, gangs, kept | unit[0]):
                kept |= unit[0]
    return kept


def _steps(gang: Gang, number: int, world: EngineQuestion) -> Iterator[tuple[set[str], bool]]:
    if number:
        yield {task.name for task in gang.all_tasks() if task.needed or task.name in world.anchors}, True
    for task in gang.all_tasks():
        if not task.needed and task.name not in world.anchors:
            yield {task.name}, False


def _possible(world: EngineQuestion, gangs: Sequence[Gang], names: set[str]) -> bool:
    whole = edits._filter(edits.joined(list(gangs)), lambda task: task.name in names)
    anchors = {task: node for task, node in world.anchors.items() if task in names}
    return twin.best(whole, world.domains, anchors, world.room) is not None
