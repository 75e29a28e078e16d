"""The queue order: by priority and age in one pool, by guarantee and weight between pools that share nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.config.configuration import GpuQuota
from coterie.gang.tree import Shape
from coterie.service.queue.cycle import QueuedGang
from coterie.service.queue.holdings import Key
from coterie.service.queue.order import EqualGangs, OrderInputs, in_order, shared_order
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry
from coterie.service.queue.ranking import Ranking
from coterie.topology.cluster import GPU
from tests.random_examples import examples
from tests.service.queue.builders import POOL, entry, gang, placed, world


def test_turns_count_what_joins_first_then_what_is_guaranteed_then_priority_then_age() -> None:
    turns = {
        "old": OrderInputs("p", joins=False, priority="NORMAL", since=1, number=1, gpus=8),
        "new": OrderInputs("p", joins=False, priority="NORMAL", since=2, number=2, gpus=8),
        "same": OrderInputs("p", joins=False, priority="NORMAL", since=2, number=3, gpus=8),
        "high": OrderInputs("p", joins=False, priority="HIGH", since=9, number=4, gpus=8),
        "covered": OrderInputs("owner", joins=False, priority="LOW", since=9, number=5, gpus=8),
        "beyond": OrderInputs("owner", joins=False, priority="LOW", since=9, number=6, gpus=8),
        "joins": OrderInputs("p", joins=True, priority="LOW", since=9, number=7, gpus=8),
    }
    quotas = {"owner": GpuQuota(guarantee=16), "p": GpuQuota()}
    assert list(in_order(turns, {"owner": 8, "p": 0}.__getitem__, quotas.__getitem__)) == [
        "joins",
        "covered",
        "high",
        "old",
        "new",
        "same",
        "beyond",
    ]


def shares(weights: Mapping[str, int], seconds: int, guarantees: Mapping[str, int] | None = None) -> dict[str, float]:
    """Return how many of ten nodes each pool uses on average if all have more to run than fits, gangs of 7 s each."""
    found = world(10)
    queue = Queue(found)
    pools = {
        name: replace(POOL, name=name, gpus=GpuQuota((guarantees or {}).get(name), weight=weight))
        for name, weight in weights.items()
    }
    ends: dict[tuple[str, str, int], float] = {}
    used = dict.fromkeys(weights, 0)
    for second in range(seconds):
        for key in [key for key, at in ends.items() if at <= second]:
            found.release(key, ["t0"])
            del ends[key]
        for name, pool in pools.items():
            queue.put(entry(f"{name}{second}-0", gang(1), since=second, pool=pool))
            queue.put(entry(f"{name}{second}-1", gang(1), since=second, pool=pool))
        ends.update((told.entry.key, second + 7) for told in queue.cycle(second) if isinstance(told, PlacedGang))
        for name in weights:
            used[name] += found.gpus(name) // 8
    return {name: round(count / seconds, 1) for name, count in used.items()}


@pytest.mark.parametrize(
    ("weights", "guarantees", "expected"),
    [
        ({"a": 1, "b": 1}, {}, {"a": 5, "b": 5}),
        ({"a": 4, "b": 1}, {}, {"a": 8, "b": 2}),
        ({"a": 2, "b": 2, "c": 1}, {}, {"a": 4, "b": 4, "c": 2}),
        ({"a": 1, "b": 1}, {"a": 48}, {"a": 8, "b": 2}),
        ({"a": 1, "b": 0}, {}, {"a": 10, "b": 0}),
    ],
)
def test_what_is_left_over_is_shared_by_weight(
    weights: dict[str, int], guarantees: dict[str, int], expected: dict[str, float]
) -> None:
    found = shares(weights, 140, guarantees)
    assert found == pytest.approx(expected, abs=0.5)


def test_the_pool_with_less_for_its_weight_goes_first_whatever_the_priority() -> None:
    rich = replace(POOL, name="rich", gpus=GpuQuota(weight=3))
    poor = replace(POOL, name="poor")
    found = world(4)
    found.hold(("v", "g", 1), "rich", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    found.hold(("u", "g", 1), "poor", {"t": "n1"}, {"t": Shape(requests=((GPU, 8),))})
    queue = Queue(found)
    queue.put(entry("urgent", gang(1), "HIGH", pool=poor))
    queue.put(entry("r1", gang(1), "LOW", since=2, pool=rich))
    queue.put(entry("r2", gang(1), "NORMAL", since=3, pool=rich))
    queue.put(entry("r3", gang(1), "LOW", since=1, pool=rich))
    # Of 8 GPUs each, rich has 2.7 for its weight; with 24 it has as much as poor, and priority decides.
    assert placed(queue) == ["r2", "r3"]
    found.release(("v", "g", 1), ["t"])
    assert placed(queue) == ["r1"]


def test_a_pool_of_weight_zero_gets_what_nobody_else_wants() -> None:
    last = replace(POOL, name="last", gpus=GpuQuota(weight=0))
    queue = Queue(world(2))
    queue.put(entry("l1", gang(1), "HIGH", since=0, pool=last))
    queue.put(entry("l2", gang(1), "HIGH", since=0, pool=last))
    queue.put(entry("m", gang(1), "LOW", since=9))
    assert placed(queue) == ["m", "l1"]


@pytest.mark.parametrize(("own", "others"), [(3, 3), (12, 3), (20, 2)])
def test_a_large_gang_is_not_starved_by_the_share_that_smaller_ones_of_its_pool_use_up(own: int, others: int) -> None:
    """One node comes free at a time, and the smaller ones see to it that the other pool's turn is before."""
    found = world(4)
    queue = Queue(found, patience=20.0)
    heavy = replace(POOL, name="heavy", gpus=GpuQuota(weight=8))
    ends: dict[tuple[str, str, int], float] = {}
    for n in range(4):
        ends[f"first{n}", "g", 1] = n + 1
        found.hold((f"first{n}", "g", 1), "heavy", {"t0": f"n{n}"}, {"t0": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(2, rack=True), since=1.0))
    for second in range(100):
        for key in [key for key, at in ends.items() if at <= second]:
            found.release(key, ["t0"])
            del ends[key]
        for n in range(2):
            queue.put(entry(f"other{second}-{n}", gang(1), since=second, pool=heavy))
            queue.put(entry(f"own{second}-{n}", gang(1), since=second + 0.5))
        cycle = [told.entry for told in queue.cycle(float(second)) if isinstance(told, PlacedGang)]
        if "large" in [each.key[0] for each in cycle]:
            return
        ends.update((each.key, second + (others if each.pool is heavy else own)) for each in cycle)
    pytest.fail("the large gang starved")


PRIORITY = st.sampled_from(["HIGH", "NORMAL", "LOW"])
TURNS = st.builds(
    OrderInputs,
    st.sampled_from("abc"),
    st.booleans(),
    PRIORITY,
    st.integers(0, 5),
    st.integers(0, 99),
    st.integers(0, 16),
)
QUOTAS = st.builds(GpuQuota, st.none() | st.integers(0, 24), st.none(), st.integers(0, 3))


@given(
    st.lists(TURNS, max_size=12), st.fixed_dictionaries({name: st.tuples(QUOTAS, st.integers(0, 40)) for name in "abc"})
)
@settings(max_examples=examples(150), deadline=None)
def test_everybody_has_one_turn_and_pools_do_not_change_the_order_inside_one(
    turns: list[OrderInputs], pools: dict[str, tuple[GpuQuota, int]]
) -> None:
    waiting = {(turn.pool, number): turn for number, turn in enumerate(turns)}

    def order(some: Mapping[tuple[str, int], OrderInputs]) -> list[tuple[str, int]]:
        return list(in_order(some, lambda name: pools[name][1], lambda name: pools[name][0]))

    found = order(waiting)
    assert sorted(found) == sorted(waiting)
    assert found == order(waiting)
    for name in "abc":
        inside = {key: turn for key, turn in waiting.items() if turn.pool == name}
        assert [key for key in found if key[0] == name] == order(inside)


def queued(number: int, turn: OrderInputs, kind: int) -> QueuedGang:
    """Return a gang of a workflow of its own, with given inputs of its order."""
    entry_ = QueueEntry((f"w{number}", "g", 1), replace(POOL, name=turn.pool), gang(1), turn.priority, 0, number)
    return QueuedGang(entry_, kind, turn, 1, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | TURNS, st.integers(0, 1)), max_size=30))
@settings(max_examples=examples(150), deadline=None)
def test_a_ranking_that_is_kept_up_to_date_equals_one_that_is_sorted_anew(
    changes: list[tuple[int, OrderInputs | None, int]],
) -> None:
    ranking, waiting = Ranking(), dict[Key, QueuedGang]()
    for number, turn, kind in changes:
        if waiting.pop(key := (f"w{number}", "g", 1), None) is not None:
            ranking.remove(key)
        if turn is not None:
            waiting[key] = queued(number, turn, kind)
            ranking.add(waiting[key])
    assert [one for run in ranking for one in run.gangs.values()] == sorted(
        waiting.values(), key=lambda one: one.order.rank
    )
    for run in ranking:
        assert {(one.order.rank, one.kind, one.entry.pool.name) for one in run.gangs.values()} == {
            (run.rank, run.kind, run.pool.name)
        }
    assert {name: pool.name for name, pool in ranking.pools.items()} == {
        one.entry.pool.name: one.entry.pool.name for one in waiting.values()
    }


@given(
    st.lists(st.tuples(TURNS, st.integers(1, 4)), max_size=6),
    st.fixed_dictionaries({name: st.tuples(QUOTAS, st.integers(0, 40)) for name in "abc"}),
)
@settings(max_examples=examples(150), deadline=None)
def test_equal_gangs_are_tried_in_the_same_order_together_as_one_by_one(
    turns: list[tuple[OrderInputs, int]], pools: dict[str, tuple[GpuQuota, int]]
) -> None:
    together = sorted(
        (EqualGangs(number, turn, count) for number, (turn, count) in enumerate(turns)), key=lambda each: each.turn.rank
    )
    apart = [EqualGangs(key, turn, 1) for key, turn, count in together for _ in range(count)]

    def order(some: list[EqualGangs[int]]) -> list[int]:
        asked = (lambda name: pools[name][1], lambda name: pools[name][0])
        return [
            key for key, count in shared_order(some, {turn.pool for _, turn, _ in some}, *asked) for _ in range(count)
        ]

    assert order(together) == order(apart)


def test_a_thousand_waiting_gangs_of_many_pools_are_put_in_order_at_once() -> None:
    waiting = {
        number: OrderInputs(f"p{number % 10}", joins=False, priority="NORMAL", since=number, number=number, gpus=8)
        for number in range(1000)
    }
    asked: list[str] = []

    def used(pool: str) -> int:
        asked.append(pool)
        return 0

    assert len(list(in_order(waiting, used, lambda _: GpuQuota()))) == 1000
    assert len(asked) <= 10 * 1000
