"""Under any observations and crashes, a workflow ends, and none of its objects is left or lost."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.lifecycle import (
    CancelAsked,
    ExitAction,
    GroupRules,
    Presence,
    RetryAsked,
    Spec,
    Status,
    Submitted,
    TaskRules,
)
from tests.lifecycle.world import World
from tests.random_examples import examples

EXITS = ((10, ExitAction.RESCHEDULE), (16, ExitAction.COMPLETE))
NEVER_GIVEN = {Status.FAILED_SUBMISSION, Status.FAILED_SERVER_ERROR}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    groups: list[GroupRules] = []
    limits = st.sampled_from([None, None, 20.0, 60.0])
    for index in range(draw(st.integers(1, 3))):
        needs = [group.name for group in groups if draw(st.booleans())]
        size = draw(st.integers(1, 3))
        tasks = tuple(TaskRules(f"t{index}{place}", lead=place == 0, exits=EXITS) for place in range(size))
        groups.append(
            GroupRules(
                f"g{index}",
                tasks,
                needs=tuple(needs),
                barrier=draw(st.booleans()),
                ignore_nonlead_status=draw(st.booleans()),
                queue_timeout_s=draw(limits),
                start_timeout_s=draw(limits),
                exec_timeout_s=draw(limits),
            )
        )
    return Spec(
        tuple(groups), max_reschedules=draw(st.integers(0, 2)), max_infrastructure_retries=draw(st.integers(0, 2))
    )


def live(world: World, choices: Sequence[tuple[int, int]]) -> None:
    """Make one move for each choice; the first number says which, and how often it is a fault."""
    for which, how in choices:
        moves = list(world.mischief() if which % 5 == 0 else world.moves()) or list(world.mischief())
        moves[which // 5 % len(moves)][1](how)


def assert_all_well(world: World) -> None:
    state = world.state
    assert state.finished
    assert [world.pods, world.held, world.requests, world.scaffolds, world.todo] == [{}, {}, {}, set(), []]
    assert (state.status is Status.COMPLETED) == all(group.status is Status.COMPLETED for group in state.groups)
    assert state.ended is not None
    for rules, group in zip(world.spec.groups, state.groups, strict=True):
        needs = [state.groups[world.spec.order[name]].status for name in rules.needs]
        assert all(task.status.final and task.presence is Presence.ABSENT for task in group.tasks)
        assert group.status is not Status.FAILED_UPSTREAM or any(need.failed for need in needs)
        if group.status is Status.COMPLETED:
            assert all(need is Status.COMPLETED for need in needs)
            deciding = [group.tasks[rules.lead]] if rules.ignore_nonlead_status else group.tasks
            assert all(task.status is Status.COMPLETED and task.exit_code in (0, 16) for task in deciding)
            if world.dated and rules.exec_timeout_s is not None:
                assert (group.ended or 0.0) - (group.started or 0.0) < rules.exec_timeout_s, "in time by its own clock"
        if group.started is not None and group.ended is not None:
            assert group.started <= group.ended <= state.ended
        for task in group.tasks:
            times = [at for at in (task.queued, task.placed, task.started, task.ended) if at is not None]
            assert times == sorted(times)
            assert task.reschedules <= world.spec.max_reschedules
            assert task.losses <= world.spec.max_infrastructure_retries
            if task.exit_code is not None:
                assert world.exits[task.name, task.attempt] == task.exit_code
            attempts = [past.attempt for past in task.past]
            assert attempts == sorted(set(attempts)), "every attempt is history at most once, in order"
            started = {attempt for name, attempt in world.starts if name == task.name}
            assert started <= {*attempts, task.attempt}, "no attempt is forgotten"


choices = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), max_size=150)


# COTERIE_LIVES asks for so many lives instead of a few hundred.
_OTHERS = int(os.environ.get("COTERIE_LIVES", "0"))


@settings(
    max_examples=_OTHERS or examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(spec=specs(), volatile_queue=st.booleans(), late_nodes=st.booleans(), dated=st.booleans(), made=choices)
def test_a_workflow_ends_and_leaves_nothing_behind(
    *, spec: Spec, volatile_queue: bool, late_nodes: bool, dated: bool, made: list[tuple[int, int]]
) -> None:
    world = World(spec, volatile_queue=volatile_queue, late_nodes=late_nodes, dated=dated)

    live(world, made)
    world.drain()

    assert_all_well(world)


def test_a_retry_that_overtakes_the_submission_begins_it() -> None:
    spec = Spec((GroupRules("g", (TaskRules("t", lead=True),)),))
    world = World(spec)

    for observation in (CancelAsked(), RetryAsked(), Submitted()):
        world.heard.append(observation)
        world.hear(observation)
    world.drain()

    assert_all_well(world)


def wander(count: int, seed: int) -> tuple[set[tuple[str, ...]], set[tuple[str, str]], set[Status]]:
    """Return what was seen in many random lives: situations of tasks, changes of status, results of workflows."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
    seen: set[tuple[str, ...]] = set()
    changes: set[tuple[str, str]] = set()
    results: set[Status] = set()
    for _ in range(count):
        world = World(
            _random_spec(chance),
            volatile_queue=chance.random() < 0.5,
            late_nodes=chance.random() < 0.3,
            dated=chance.random() < 0.5,
        )
        live(world, [(chance.randrange(1000), chance.randrange(1000)) for _ in range(chance.randrange(200))])
        world.drain()
        assert_all_well(world)
        seen |= world.seen
        changes |= world.changes
        results.add(world.state.status)
    return seen, changes, results


def _random_spec(chance: random.Random) -> Spec:
    groups: list[GroupRules] = []
    for index in range(chance.randint(1, 3)):
        limits = [chance.choice([None, None, 20.0, 60.0]) for _ in range(3)]
        tasks = tuple(TaskRules(f"t{index}{n}", lead=n == 0, exits=EXITS) for n in range(chance.randint(1, 4)))
        needs = tuple(group.name for group in groups if chance.random() < 0.5)
        groups.append(GroupRules(f"g{index}", tasks, needs, chance.random() < 0.5, chance.random() < 0.5, *limits))
    return Spec(tuple(groups), max_reschedules=chance.randint(0, 2), max_infrastructure_retries=chance.randint(0, 2))


@pytest.mark.slow("plays many random lives, until every status has been met")
def test_many_lives_meet_every_status_and_every_presence() -> None:
    seen, changes, results = wander(400, seed=1)

    met = {status for status, *_ in seen}
    assert {status.value for status in Status} - met == {Status.PENDING, *NEVER_GIVEN}
    assert {presence for _, presence, *_ in seen} == set(Presence)
    assert results >= {Status.COMPLETED, Status.FAILED, Status.FAILED_CANCELED, Status.FAILED_EXEC_TIMEOUT}
    assert len(seen) > 300
    assert len(changes) > 60
