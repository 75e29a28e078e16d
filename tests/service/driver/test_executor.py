"""The repetition of postponed actions: bounded in every turn, in order, and one problem for as long as it lasts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coterie.errors import Unavailable
from coterie.lifecycle import Enqueue, Stop
from coterie.service.driver import executor
from coterie.service.driver.executor import ActionExecutor
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow

TASKS = 3
EACH_S = 0.03


@dataclass
class Clock:
    """A clock that only actions move."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds


@dataclass
class World:
    """Workflows whose actions each take a moment, and fail while the disk is full; what was done is noted."""

    clock: Clock
    full: bool = True
    done: list[tuple[str, str]] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def act(self, life: LiveWorkflow, action: Stop | Enqueue) -> None:
        self.clock.seconds += EACH_S
        self.tried.append(life.id)
        if self.full:
            raise Unavailable("the disk is full", "Make room.")
        self.done.append((life.id, action.task if isinstance(action, Stop) else action.group))


def lives(count: int) -> dict[str, LiveWorkflow]:
    names = (f"w{number}" for number in range(count))
    return {
        name: cast("LiveWorkflow", SimpleNamespace(id=name, pool="p", digest={}, spec=None, state=None))
        for name in names
    }


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(Clock())
    monkeypatch.setattr(executor, "time", SimpleNamespace(monotonic=found.clock.now))
    monkeypatch.setattr(executor, "outstanding", lambda *_: [Stop(f"t{number}", 1, 0.0) for number in range(TASKS)])
    monkeypatch.setattr(ActionExecutor, "_do", lambda _, life, action: found.act(life, action))
    return found


def made(world: World, problems: ServiceProblems) -> ActionExecutor:
    drivers = SimpleNamespace(problem=lambda _: "tasks")
    unused: Any = None
    return ActionExecutor(
        unused, cast("Any", drivers), world.clock.now, problems, lambda: None, lambda _: nullcontext()
    )


def test_a_turn_repeats_postponed_actions_for_a_limited_time_and_the_next_goes_on(world: World) -> None:
    problems, known = ServiceProblems(world.clock.now), lives(100)
    found = made(world, problems)
    found.again(known.values())
    found.perform(1000.0)
    assert sorted(world.tried) == sorted(known)
    assert len(found.events) == 1

    # While the disk stays full, a turn tries some, the next turn others, and nobody is tried twice before all are.
    world.clock.seconds += 1000.0
    tried: list[str] = []
    while len(tried) < len(known):
        world.tried.clear()
        began = world.clock.seconds
        found.catch_up(known, began)
        assert world.clock.seconds - began < executor._REPEAT_S + EACH_S + 0.001
        tried += world.tried
    assert sorted(tried) == sorted(known)

    # Once there is room, all that is outstanding is done, in order, and the problem is said until then.
    world.full = False
    world.clock.seconds += 1000.0
    turns = 0
    while found.late_at is not None or found.busy:
        assert [one.what for one in problems.all()] == ["tasks"]
        assert found.behind(cast("Any", SimpleNamespace(problem="tasks")))
        began = world.clock.seconds
        found.catch_up(known, began)
        assert world.clock.seconds - began < executor._REPEAT_S + EACH_S + 0.001
        turns += 1
    assert turns > 10
    assert problems.all() == []
    for name in known:
        assert [task for workflow, task in world.done if workflow == name] == [f"t{number}" for number in range(TASKS)]
    assert len(found.events) == 1


def test_actions_that_come_while_others_are_repeated_follow_them(world: World) -> None:
    found, known = made(world, ServiceProblems(world.clock.now)), lives(1)
    found.again(known.values())
    found.perform(1000.0)
    world.full = False
    world.clock.seconds += 1000.0
    found._repeat("w0", known["w0"])
    found.add([(known["w0"], Stop("later", 1, 0.0))])
    while found.busy:
        found.perform(1000.0)
        found.catch_up(known, world.clock.seconds)
    assert [task for _, task in world.done] == [*(f"t{number}" for number in range(TASKS)), "later"]


def test_very_many_postponed_workflows_delay_no_new_action(world: World) -> None:
    found, known = made(world, ServiceProblems(world.clock.now)), lives(100)
    found.again(known.values())
    found.perform(1000.0)
    world.clock.seconds += 1000.0
    found.catch_up(known, world.clock.seconds)
    world.full = False
    (new,) = lives(1).values()
    new = cast("LiveWorkflow", SimpleNamespace(**{**vars(new), "id": "new"}))
    found.add([(new, Stop("t", 1, 0.0))])
    found.perform(EACH_S / 2)
    assert world.done == [("new", "t")]


def test_workflows_alternate_with_their_actions_and_a_turn_ends_in_time(world: World) -> None:
    world.full = False
    found = made(world, ServiceProblems(world.clock.now))
    large, small = lives(2).values()
    found.add([(large, Stop(f"t{number}", 1, 0.0)) for number in range(1000)])
    found.add([(small, Stop("t", 1, 0.0))])
    began = world.clock.seconds
    found.perform(5 * EACH_S)
    assert world.done[:2] == [(large.id, "t0"), (small.id, "t")]
    assert world.clock.seconds - began < 7 * EACH_S
    assert found.busy


@pytest.mark.parametrize(
    ("small", "asked", "steps"), [(False, False, 20), (False, True, 6), (True, False, 6), (True, True, 6)]
)
def test_a_large_workflow_lets_the_next_turn_begin_early_where_others_wait_for_it(
    world: World, steps: int, *, small: bool, asked: bool
) -> None:
    world.full = False
    found = made(world, ServiceProblems(world.clock.now))
    large, other = lives(2).values()
    found.add([(large, Stop(f"t{number}", 1, 0.0)) for number in range(1000)])
    found.add([(other, Stop("t", 1, 0.0))] if small else [])
    found.perform(19.5 * EACH_S, 5.5 * EACH_S, lambda: asked)
    assert len(world.done) == steps


def test_many_small_workflows_are_not_interrupted(world: World) -> None:
    world.full = False
    found, known = made(world, ServiceProblems(world.clock.now)), lives(30)
    for life in known.values():
        found.add([(life, Stop("t", 1, 0.0)), (life, Stop("u", 1, 0.0))])
    found.perform(1000.0, EACH_S, lambda: True)
    assert not found.busy
    assert len(world.done) == 60


def test_a_workflow_of_very_many_groups_is_queued_in_pieces_and_in_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.full = False
    monkeypatch.setattr(executor, "_ENQUEUED", 3)
    found = made(world, ServiceProblems(world.clock.now))
    large, small = lives(2).values()
    groups = [f"g{number}" for number in range(10)]
    found.add([(large, Enqueue(group, 1, 1, ("t",))) for group in groups])
    assert [group for _, group in world.done] == groups[:3]
    found.add([(small, Enqueue("g", 1, 1, ("t",)))])
    assert world.done.pop() == (small.id, "g")
    found.perform(1000.0)
    assert [group for _, group in world.done] == groups
