from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import Reason
from coterie.frontends.config import GpuQuota, Pool
from coterie.gang import edits
from coterie.gang.rules import Asked, Requirement, build
from coterie.gang.tree import Gang, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Absent, Found, place
from coterie.service.queue import Entry, Queue, Seated, Told, only_tasks, without_nodes
from coterie.service.turns import Turn, in_turn
from coterie.service.world import World
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.levels import Topology

LEVELS = Topology.of(("rack", "rack"))
POOL = Pool("main", "lab", "local", topology=LEVELS)
NUMBERS = count(1)


def world(nodes: int = 4) -> World:
    return World(Cluster.of([Node(f"n{n}", {"rack": f"r{n // 2}"}, {GPU: 8}) for n in range(nodes)]))


def gang(tasks: int, gpu: int = 8, *, rack: bool = False) -> Gang:
    wants = (Requirement("rack", "default", required=True),) if rack else ()
    shape = Shape(requests=((GPU, gpu),) if gpu else ())
    return build("g", [Asked(f"t{n}", shape, wants) for n in range(tasks)], LEVELS)


def entry(name: str, one: Gang, priority: str = "NORMAL", since: float = 0.0, pool: Pool = POOL) -> Entry:
    return Entry((name, "g", 1), pool, one, priority, since, next(NUMBERS))


def placed(queue: Queue, now: float = 0.0) -> list[str]:
    return [told.entry.key[0] for told in queue.cycle(now) if isinstance(told, Seated)]


def reasons(queue: Queue, now: float = 0.0) -> dict[str, str]:
    return {
        told.entry.key[0]: told.decision.refusal.reason.value
        for told in queue.cycle(now)
        if isinstance(told, Told) and told.decision.refusal
    }


def test_priority_goes_before_age() -> None:
    queue = Queue(world(1))
    for name, priority, since in [("old", "LOW", 0), ("new", "HIGH", 9), ("mid", "NORMAL", 5), ("mid2", "NORMAL", 4)]:
        queue.put(entry(name, gang(1), priority, since))
    assert [each.key[0] for each in queue.entries()] == ["new", "mid2", "mid", "old"]
    assert placed(queue) == ["new"]


def test_a_gang_that_must_wait_does_not_hold_back_smaller_ones() -> None:
    queue = Queue(world(2))
    queue.put(entry("large", gang(3), since=0))
    queue.put(entry("small", gang(2), since=1))
    assert placed(queue) == ["small"]


def test_why_a_gang_waits_is_told_once_until_it_changes() -> None:
    queue = Queue(world(2))
    queue.put(entry("large", gang(3, rack=True)))
    assert reasons(queue) == {"large": "NeverFits"}
    assert reasons(queue) == {}


def test_a_gang_is_all_or_nothing() -> None:
    found = world(2)
    queue = Queue(found)
    queue.put(entry("two", gang(3)))
    assert placed(queue) == []
    assert list(found.holdings()) == []


def test_quota_is_a_limit_and_says_so() -> None:
    limited = replace(POOL, gpus=GpuQuota(limit=16))
    queue = Queue(world(4))
    queue.put(entry("a", gang(2), since=0, pool=limited))
    queue.put(entry("b", gang(1), since=1, pool=limited))
    queue.put(entry("never", gang(3), since=2, pool=limited))
    queue.put(entry("cpu", gang(1, gpu=0), since=3, pool=limited))
    assert placed(queue) == ["a", "cpu"]
    told = {each.entry.key[0]: each.decision for each in Queue.cycle(_again(queue), 0.0) if isinstance(each, Told)}
    assert {name: one.refusal.reason for name, one in told.items() if one.refusal} == {
        "b": Reason.OVER_QUOTA,
        "never": Reason.OVER_QUOTA,
    }
    assert told["never"].verdict.value == "impossible"


def test_no_more_gangs_are_placed_than_the_machine_may_run_tasks() -> None:
    found = world(4)
    queue = Queue(found, 10.0, lambda: (found.tasks, 3))
    queue.put(entry("a", gang(1, gpu=1), since=0))
    queue.put(entry("large", gang(5, gpu=1), since=1))
    queue.put(entry("b", gang(2, gpu=1), since=2))
    queue.put(entry("c", gang(1, gpu=1), since=3))
    first = list(queue.cycle(0.0))
    assert [told.entry.key[0] for told in first if isinstance(told, Seated)] == ["a", "b"]
    refusals = {told.entry.key[0]: told.decision.refusal for told in first if isinstance(told, Told)}
    assert {name: (one.reason, one.running) for name, one in refusals.items() if one} == {
        "large": (Reason.NO_CAPACITY, (3, 3)),
        "c": (Reason.NO_CAPACITY, (3, 3)),
    }
    # The large one has been passed for too long: nobody else starts until nothing runs, and then it does, alone.
    found.release(("a", "g", 1), ["t0"])
    assert placed(queue, 11.0) == []
    found.release(("b", "g", 1), ["t0", "t1"])
    assert placed(queue, 12.0) == ["large"]


def _again(queue: Queue) -> Queue:
    fresh = Queue(queue.world)
    for each in queue.entries():
        fresh.put(each)
    return fresh


def test_a_pool_under_its_guarantee_goes_before_one_without() -> None:
    owner = replace(POOL, name="owner", gpus=GpuQuota(guarantee=16))
    queue = Queue(world(3))
    queue.put(entry("guest", gang(2), "HIGH", since=0))
    queue.put(entry("owner1", gang(1), "LOW", since=5, pool=owner))
    queue.put(entry("owner2", gang(1), "LOW", since=6, pool=owner))
    queue.put(entry("owner3", gang(1), "LOW", since=7, pool=owner))
    # The guarantee covers two of the three; the guest needs two nodes, and only one is left.
    assert placed(queue) == ["owner1", "owner2", "owner3"]


def test_a_guarantee_covers_no_more_than_it_says() -> None:
    owner = replace(POOL, name="owner", gpus=GpuQuota(guarantee=8))
    queue = Queue(world(3))
    queue.put(entry("guest", gang(2), since=0))
    queue.put(entry("owner1", gang(1), since=5, pool=owner))
    queue.put(entry("owner2", gang(1), since=6, pool=owner))
    assert placed(queue) == ["owner1", "guest"]


@pytest.mark.parametrize("patience", [5.0, 30.0])
@pytest.mark.parametrize("shared", [False, True], ids=["one pool", "pools that share nodes"])
def test_a_large_gang_behind_an_endless_stream_of_small_ones_gets_its_turn(*, patience: float, shared: bool) -> None:
    # Small gangs come every second and run for three: there is never a moment with a whole rack free.
    found = world(4)
    queue = Queue(found, patience)
    other = replace(POOL, name="other") if shared else POOL
    ends: list[tuple[float, tuple[str, str, int]]] = []
    queue.put(entry("large", gang(2, rack=True), since=0.0))
    for n in range(4):
        queue.put(entry(f"first{n}", gang(1), "HIGH", since=0.0, pool=other))
    for second in range(200):
        now = float(second)
        for at, key in [each for each in ends if each[0] <= now]:
            found.release(key, ["t0", "t1"])
            ends.remove((at, key))
        for n in range(2):
            queue.put(entry(f"small{second}-{n}", gang(1), since=now + 0.5, pool=other))
        ends += [(now + 3, told.entry.key) for told in queue.cycle(now) if isinstance(told, Seated)]
        if ("large", "g", 1) not in queue:
            assert now <= patience + 10
            return
    pytest.fail("the large gang starved")


def test_without_patience_running_out_small_ones_do_pass() -> None:
    found = world(4)
    queue = Queue(found, patience=1000.0)
    found.hold(("w", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    found.hold(("v", "g", 1), "main", {"t": "n2"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(2, rack=True)))
    queue.put(entry("small", gang(1), since=1.0))
    assert placed(queue) == ["small"]


def test_nodes_kept_for_one_are_given_back_when_it_leaves() -> None:
    found = world(2)
    queue = Queue(found, patience=1.0)
    found.hold(("w", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(2, rack=True)))
    queue.put(entry("s1", gang(1, gpu=4), since=1.0))
    assert placed(queue, 0.0) == ["s1"]
    queue.put(entry("s2", gang(1, gpu=4), since=2.0))
    assert placed(queue, 5.0) == []
    queue.drop(("large", "g", 1))
    assert placed(queue, 6.0) == ["s2"]


def test_a_newcomer_of_higher_priority_is_not_taken_for_one_that_failed() -> None:
    found = world(2)
    queue = Queue(found, patience=1.0)
    found.hold(("w", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(2, rack=True)))
    queue.put(entry("s1", gang(1, gpu=4), since=1.0))
    assert placed(queue, 0.0) == ["s1"]
    queue.put(entry("s2", gang(1, gpu=4), since=2.0))
    assert placed(queue, 5.0) == []
    queue.put(entry("urgent", gang(1, gpu=4), "HIGH", since=6.0))
    assert placed(queue, 6.0) == ["urgent"]


def test_tasks_that_join_running_ones_go_where_those_are() -> None:
    found = world(4)
    queue = Queue(found)
    shape = Shape(requests=((GPU, 8),))
    found.hold(("w", "g", 1), "main", {"t0": "n2"}, {"t0": shape})
    queue.put(Entry(("w", "g", 2), POOL, gang(2, rack=True), "LOW", 9.0, 1, {"t0": "n2"}))
    (seated,) = [each for each in queue.cycle(0.0) if isinstance(each, Seated)]
    assert [(one.task, one.node) for one in seated.held] == [("t1", "n3")]


def test_many_gangs_of_one_kind_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Gang] = []

    def counting(one: Gang, capacity: Capacity, *, anchors: Mapping[str, str], budget: int) -> Found | Absent:
        asked.append(one)
        return place(one, capacity, anchors=anchors, budget=budget)

    monkeypatch.setattr("coterie.service.queue.place", counting)
    queue = Queue(world(2))
    for n in range(200):
        queue.put(entry(f"w{n}", gang(3), since=n))
    list(queue.cycle(0.0))
    first = len(asked)
    list(queue.cycle(0.0))
    assert first == 1
    assert len(asked) == first


def test_excluded_nodes_are_avoided() -> None:
    queue = Queue(world(2))
    queue.put(entry("w", without_nodes(gang(1), ["n0"])))
    (seated,) = [each for each in queue.cycle(0.0) if isinstance(each, Seated)]
    assert seated.held[0].node == "n1"


def test_only_the_named_tasks_are_kept() -> None:
    found = only_tasks(gang(3, rack=True), ["t1"])
    assert [task.name for task in found.all_tasks()] == ["t1"]
    assert [group.level for group in found.walk()] == ["rack"]
    assert only_tasks(found, []).groups == ()


def test_a_queue_before_new_nodes_keeps_who_waits_and_since_when_they_are_passed() -> None:
    found = world(2)
    queue = Queue(found, patience=10.0)
    found.hold(("w", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(2, rack=True)))
    queue.put(entry("s1", gang(1, gpu=4), since=1.0))
    assert placed(queue, 0.0) == ["s1"]
    other = world(2)
    for key, pool, held in found.placements():
        other.restore(key, pool, held)
    moved = queue.onto(other)
    moved.put(entry("s2", gang(1, gpu=4), since=2.0))
    # Its patience is over, though it waits before other nodes now.
    assert placed(moved, 11.0) == []


def test_a_gang_whose_pool_changes_is_not_made_to_wait_longer() -> None:
    found = world(2)
    queue = Queue(found, patience=10.0)
    found.hold(("w", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((GPU, 8),))})
    large = entry("large", gang(2, rack=True))
    queue.put(large)
    queue.put(entry("s1", gang(1, gpu=4), since=1.0))
    assert placed(queue, 0.0) == ["s1"]
    queue.put(replace(large, pool=replace(POOL, gpus=GpuQuota(limit=64))))
    queue.put(entry("s2", gang(1, gpu=4), since=2.0))
    assert placed(queue, 11.0) == []


def test_turns_count_what_joins_first_then_what_is_guaranteed_then_priority_then_age() -> None:
    turns = {
        "old": Turn("p", joins=False, priority="NORMAL", since=1, number=1, gpus=8),
        "new": Turn("p", joins=False, priority="NORMAL", since=2, number=2, gpus=8),
        "same": Turn("p", joins=False, priority="NORMAL", since=2, number=3, gpus=8),
        "high": Turn("p", joins=False, priority="HIGH", since=9, number=4, gpus=8),
        "covered": Turn("owner", joins=False, priority="LOW", since=9, number=5, gpus=8),
        "beyond": Turn("owner", joins=False, priority="LOW", since=9, number=6, gpus=8),
        "joins": Turn("p", joins=True, priority="LOW", since=9, number=7, gpus=8),
    }
    quotas = {"owner": GpuQuota(guarantee=16), "p": GpuQuota()}
    assert list(in_turn(turns, {"owner": 8, "p": 0}.__getitem__, quotas.__getitem__)) == [
        "joins",
        "covered",
        "high",
        "old",
        "new",
        "same",
        "beyond",
    ]


# Groups of one workflow. Rack r0 has two nodes, r1 has three.


def racks(*sizes: int) -> World:
    nodes = [
        Node(f"r{rack}-{n}", {"rack": f"r{rack}"}, {GPU: 8}) for rack, size in enumerate(sizes) for n in range(size)
    ]
    return World(Cluster.of(nodes))


def party(queue: Queue, groups: Mapping[str, Gang], pool: Pool = POOL, number: int = 1, name: str = "w") -> None:
    """Let groups of one workflow wait, in this order."""
    for group, one in groups.items():
        tasks = {task.name: f"{group}-{task.name}" for task in one.all_tasks()}
        named = edits.mapped(one, lambda task, tasks=tasks: replace(task, name=tasks[task.name]))  # type: ignore[misc]
        queue.put(Entry((name, group, 1), pool, named, "NORMAL", 0.0, number))


def seats(queue: Queue, now: float = 0.0) -> dict[str, list[str]]:
    """Run a cycle; return the nodes of every group that was seated, in turn."""
    cycle = [each for each in queue.cycle(now) if isinstance(each, Seated)]
    return {each.entry.key[1]: sorted(one.node for one in each.held) for each in cycle}


# The first goes to the tighter rack, which is the only one that does for the second.
NARROW = {"free": gang(1), "picky": without_nodes(gang(2, rack=True), ["r1-0", "r1-1", "r1-2"])}


def test_a_group_that_had_a_choice_moves_for_one_of_its_workflow_that_has_none() -> None:
    alone = Queue(racks(2, 3))
    party(alone, {"free": NARROW["free"]})
    assert seats(alone) == {"free": ["r0-0"]}

    found = racks(2, 3)
    queue = Queue(found)
    party(queue, NARROW)
    assert seats(queue) == {"free": ["r1-0"], "picky": ["r0-0", "r0-1"]}
    assert len(queue) == 0
    held = {one.task: (one.node, one.gpus) for one in found.holdings()}
    assert held == {
        "free-t0": ("r1-0", tuple(range(8))),
        "picky-t0": ("r0-0", tuple(range(8))),
        "picky-t1": ("r0-1", tuple(range(8))),
    }


def test_groups_of_different_workflows_do_not_move_for_each_other() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": NARROW["free"]}, name="v")
    party(queue, {"picky": NARROW["picky"]}, number=2)
    assert seats(queue) == {"free": ["r0-0"]}


def test_a_group_that_runs_does_not_move() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": NARROW["free"]})
    assert seats(queue) == {"free": ["r0-0"]}
    party(queue, {"picky": NARROW["picky"]})
    assert seats(queue) == {}


def test_groups_that_do_not_fit_together_are_seated_as_far_as_they_do() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": gang(4), "picky": NARROW["picky"], "last": gang(1)})
    assert list(seats(queue)) == ["free", "last"]
    assert [each.key[1] for each in queue.entries()] == ["picky"]


@pytest.mark.parametrize(("limit", "seated"), [(24, ["free", "picky"]), (23, ["free"])])
def test_groups_together_keep_to_the_limit_of_their_pool(limit: int, seated: list[str]) -> None:
    queue = Queue(racks(2, 3))
    party(queue, NARROW, replace(POOL, gpus=GpuQuota(limit=limit)))
    assert list(seats(queue)) == seated


@pytest.mark.parametrize(("most", "seated"), [(3, ["free", "picky"]), (2, ["free"])])
def test_groups_together_keep_to_the_bound_of_processes(most: int, seated: list[str]) -> None:
    found = racks(2, 3)
    queue = Queue(found, 10.0, lambda: (found.tasks, most))
    party(queue, NARROW)
    assert list(seats(queue)) == seated


def test_groups_together_keep_off_nodes_that_are_kept_for_somebody() -> None:
    """A large gang has waited too long, and r1 is kept for it: there is nowhere else for the group to go."""
    found = racks(2, 3)
    queue = Queue(found, patience=1.0)
    found.hold(("v", "g", 1), "main", {"t": "r1-0"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(3, rack=True)))
    queue.put(entry("small", gang(1, gpu=0), since=1.0))
    assert placed(queue, 0.0) == ["small"]
    party(queue, NARROW, number=1000)
    assert seats(queue, 5.0) == {"free": ["r0-0"]}


def test_nobody_comes_to_a_kept_node_in_exchange_for_a_group_that_would_leave_it() -> None:
    found = racks(2, 3)
    queue = Queue(found, patience=1.0)
    found.hold(("v", "g", 1), "main", {"t": "r0-1"}, {"t": Shape(requests=((GPU, 8),))})
    large = without_nodes(gang(2), ["r1-0", "r1-1", "r1-2"])
    queue.put(entry("large", large, since=0.0))
    queue.put(entry("small", gang(1, gpu=0), since=1.0))
    assert placed(queue, 0.0) == ["small"]
    only = without_nodes(gang(1), ["r0-1", "r1-0", "r1-1", "r1-2"])
    party(queue, {"only": only})
    queue.put(replace(queue._waiting["w", "only", 1], since=9.0))
    queue.put(Entry(("w", "free", 1), POOL, gang(1), "HIGH", 0.0, 1))
    # `free` goes before the large one, for which r0 is then kept; `only` comes after it.
    assert seats(queue, 5.0) == {"free": ["r0-0"]}


def test_tasks_that_join_running_ones_stay_near_them_when_others_are_placed_with_them() -> None:
    found = racks(2, 3)
    shape = Shape(requests=((GPU, 8),))
    found.hold(("w", "joins", 1), "main", {"a": "r1-0"}, {"a": shape})
    tasks = [Asked(name, shape, (Requirement("rack", "default", required=True),)) for name in ("a", "b")]
    queue = Queue(found)
    queue.put(Entry(("w", "joins", 2), POOL, build("joins", tasks, LEVELS), "NORMAL", 0.0, 1, {"a": "r1-0"}))
    party(queue, NARROW)
    assert seats(queue) == {"joins": ["r1-1"], "free": ["r1-2"], "picky": ["r0-0", "r0-1"]}


def test_many_groups_of_one_kind_are_asked_about_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(one: Gang, capacity: Capacity, *, anchors: Mapping[str, str], budget: int) -> Found | Absent:
        asked.append(len(one.all_tasks()))
        return place(one, capacity, anchors=anchors, budget=budget)

    monkeypatch.setattr("coterie.service.tables.place", counting)
    queue = Queue(racks(2, 3))
    party(queue, {f"g{n}": gang(2, rack=True) for n in range(50)})
    assert list(seats(queue)) == ["g0", "g1"]
    assert asked == [6]
    assert seats(queue) == {}
    assert asked == [6]


# Pools that share nodes


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
        ends.update((told.entry.key, second + 7) for told in queue.cycle(second) if isinstance(told, Seated))
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
        cycle = [told.entry for told in queue.cycle(float(second)) if isinstance(told, Seated)]
        if "large" in [each.key[0] for each in cycle]:
            return
        ends.update((each.key, second + (others if each.pool is heavy else own)) for each in cycle)
    pytest.fail("the large gang starved")


PRIORITY = st.sampled_from(["HIGH", "NORMAL", "LOW"])
TURNS = st.builds(
    Turn, st.sampled_from("abc"), st.booleans(), PRIORITY, st.integers(0, 5), st.integers(0, 99), st.integers(0, 16)
)
QUOTAS = st.builds(GpuQuota, st.none() | st.integers(0, 24), st.none(), st.integers(0, 3))


@given(
    st.lists(TURNS, max_size=12), st.fixed_dictionaries({name: st.tuples(QUOTAS, st.integers(0, 40)) for name in "abc"})
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_everybody_has_one_turn_and_pools_do_not_change_the_order_inside_one(
    turns: list[Turn], pools: dict[str, tuple[GpuQuota, int]]
) -> None:
    waiting = {(turn.pool, number): turn for number, turn in enumerate(turns)}

    def order(some: Mapping[tuple[str, int], Turn]) -> list[tuple[str, int]]:
        return list(in_turn(some, lambda name: pools[name][1], lambda name: pools[name][0]))

    found = order(waiting)
    assert sorted(found) == sorted(waiting)
    assert found == order(waiting)
    for name in "abc":
        inside = {key: turn for key, turn in waiting.items() if turn.pool == name}
        assert [key for key in found if key[0] == name] == order(inside)


def test_a_thousand_waiting_gangs_of_many_pools_are_put_in_order_at_once() -> None:
    waiting = {
        number: Turn(f"p{number % 10}", joins=False, priority="NORMAL", since=number, number=number, gpus=8)
        for number in range(1000)
    }
    asked: list[str] = []

    def used(pool: str) -> int:
        asked.append(pool)
        return 0

    assert len(list(in_turn(waiting, used, lambda _: GpuQuota()))) == 1000
    assert len(asked) <= 10 * 1000
