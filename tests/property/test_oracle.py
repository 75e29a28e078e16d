"""The two judges of the engine, one that enumerates and one that solves, agree with each other."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from tests.placement import twin
from tests.property.oracle import optimum
from tests.property.worlds.random_worlds import FAMILIES, EngineQuestion, tiny, tiny_worlds, world
from tests.random_examples import examples

pytestmark = pytest.mark.oracle


@given(tiny_worlds())
@settings(max_examples=examples(100), deadline=None)
def test_oracle_agrees_with_twin(asked: EngineQuestion) -> None:
    expected = twin.best(asked.gang, asked.domains, asked.anchors, asked.room)
    assert optimum(asked.gang, asked.domains, asked.anchors, asked.room) == expected


def test_oracle_agrees_with_twin_on_drawn_worlds() -> None:
    feasible = costly = 0
    for seed in range(300):
        asked = tiny(Random(seed))  # noqa: S311 - worlds are drawn, not secrets
        expected = twin.best(asked.gang, asked.domains, asked.anchors, asked.room)
        assert optimum(asked.gang, asked.domains, asked.anchors, asked.room) == expected, f"seed {seed}\n{asked}"
        feasible += expected is not None
        costly += expected is not None and any(expected)
    assert 100 <= feasible <= 200
    assert costly >= 20


def test_a_seed_makes_the_same_world_every_time() -> None:
    for seed in range(3 * len(FAMILIES)):
        assert str(world(seed)) == str(world(seed))


def test_worlds_stay_within_their_size() -> None:
    for seed in range(10 * len(FAMILIES)):
        asked = world(seed)
        assert 1 <= len(asked.nodes) <= 40, asked.name
        assert 1 <= len(asked.gang.all_tasks()) <= 24, asked.name


@pytest.mark.slow("asks an exact solver about many worlds of each kind")
def test_worlds_are_balanced_between_feasible_and_not() -> None:
    asked = [world(seed) for seed in range(8 * len(FAMILIES))]
    truths = [optimum(one.gang, one.domains, one.anchors, one.room) is not None for one in asked]
    assert 0.35 <= sum(truths) / len(truths) <= 0.65
