"""The queue: priority before age, backfilling, all-or-nothing placement, quotas and reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coterie.config.configuration import GpuQuota
from coterie.errors import Reason
from coterie.gang.tree import Gang, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.refusal import Verdict
from coterie.planning.plan import Planner
from coterie.planning.workload import Workload
from coterie.service.queue.cycle import QueuedGang
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry, WaitReason, only_tasks, without_nodes
from coterie.topology.cluster import GPU, GPUS
from tests.service.queue.builders import POOL, entry, gang, placed, world


def reasons(queue: Queue, now: float = 0.0) -> dict[str, str]:
    return {
        told.entry.key[0]: told.decision.refusal.reason.value
        for told in queue.cycle(now)
        if isinstance(told, WaitReason) and told.decision.refusal
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


@pytest.mark.parametrize("kind", GPUS)
def test_quota_is_a_limit_and_says_so(kind: str) -> None:
    limited = replace(POOL, gpus=GpuQuota(limit=16))
    queue = Queue(world(4, kind))
    queue.put(entry("a", gang(2, kind=kind), since=0, pool=limited))
    queue.put(entry("b", gang(1, kind=kind), since=1, pool=limited))
    queue.put(entry("never", gang(3, kind=kind), since=2, pool=limited))
    queue.put(entry("cpu", gang(1, gpu=0), since=3, pool=limited))
    assert placed(queue) == ["a", "cpu"]
    told = {
        each.entry.key[0]: each.decision for each in Queue.cycle(_again(queue), 0.0) if isinstance(each, WaitReason)
    }
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
    assert [told.entry.key[0] for told in first if isinstance(told, PlacedGang)] == ["a", "b"]
    refusals = {told.entry.key[0]: told.decision.refusal for told in first if isinstance(told, WaitReason)}
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


def test_partitions_of_gpus_are_not_counted_as_gpus_by_a_quota_nor_by_a_plan() -> None:
    part = "nvidia.com/mig-1g.10gb"
    limited = replace(POOL, gpus=GpuQuota(limit=4))
    found = world(1, part)
    queue = Queue(found)
    queue.put(entry("parts", gang(1, kind=part), pool=limited))
    assert placed(queue) == ["parts"]
    assert found.gpus(limited.name) == 0
    plan = Planner(found.cluster).plan(Workload("w", "Workflow", limited, (gang(1, kind=part),)))
    assert plan.gangs[0].decision.found


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
        ends += [(now + 3, told.entry.key) for told in queue.cycle(now) if isinstance(told, PlacedGang)]
        if ("large", "g", 1) not in queue:
            assert now <= patience + 10
            return
    pytest.fail("the large gang starved")


def test_a_gang_that_needs_most_of_a_limit_gets_its_turn_behind_small_ones() -> None:
    limited = replace(POOL, gpus=GpuQuota(limit=16))
    found = world(4)
    queue = Queue(found, 5.0)
    ends: list[tuple[float, tuple[str, str, int]]] = []
    queue.put(entry("first", gang(1), "HIGH", since=0.0, pool=limited))
    queue.put(entry("large", gang(2), since=0.0, pool=limited))
    for second in range(100):
        now = float(second)
        for at, key in [each for each in ends if each[0] <= now]:
            found.release(key, ["t0"])
            ends.remove((at, key))
        queue.put(entry(f"small{second}", gang(1), since=now + 0.5, pool=limited))
        queue.put(entry(f"cpu{second}", gang(1, gpu=0), since=now + 0.6, pool=limited))
        seated = [told.entry.key for told in queue.cycle(now) if isinstance(told, PlacedGang)]
        assert (f"cpu{second}", "g", 1) in seated, "what takes nothing of the limit is not held back by it"
        ends += [(now + 3, key) for key in seated]
        if ("large", "g", 1) in seated:
            assert now <= 10
            return
    pytest.fail("the large gang starved")


def test_a_gang_that_can_never_be_under_the_limit_holds_nobody_back() -> None:
    limited = replace(POOL, gpus=GpuQuota(limit=16))
    queue = Queue(world(4), 0.0)
    queue.put(entry("never", gang(3), since=0.0, pool=limited))
    queue.put(entry("one", gang(1), since=1.0, pool=limited))
    assert placed(queue, 0.0) == ["one"]
    queue.put(entry("two", gang(1), since=2.0, pool=limited))
    assert placed(queue, 10.0) == ["two"]


def test_who_waits_too_long_for_the_machine_is_not_passed_in_other_queues_either() -> None:
    here, there = world(4), world(4)
    running = lambda: (here.tasks + there.tasks, 4)  # noqa: E731 - as the service hands it over
    queues = Queue(here, 5.0, running), Queue(there, 5.0, running)
    there.hold(("first", "g", 1), "main", {"t0": "n0"}, {"t0": Shape(requests=((GPU, 8),))})
    ends: list[tuple[float, tuple[str, str, int]]] = [(2.0, ("first", "g", 1))]
    queues[0].put(entry("large", gang(4), since=0.0))
    for second in range(100):
        now = float(second)
        for at, key in [each for each in ends if each[0] <= now]:
            there.release(key, ["t0"])
            ends.remove((at, key))
        queues[1].put(entry(f"small{second}", gang(1), since=now))
        starved = [queue for queue in queues if queue.starved(now)]
        for queue in reversed(queues):
            told = queue.cycle(now, shut=any(other is not queue for other in starved))
            ends += [(now + 3, one.entry.key) for one in told if isinstance(one, PlacedGang) and queue is queues[1]]
        if ("large", "g", 1) not in queues[0]:
            assert now <= 12
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
    queue.put(QueueEntry(("w", "g", 2), POOL, gang(2, rack=True), "LOW", 9.0, 1, {"t0": "n2"}))
    (seated,) = [each for each in queue.cycle(0.0) if isinstance(each, PlacedGang)]
    assert [(one.task, one.node) for one in seated.held] == [("t1", "n3")]


def test_many_gangs_of_one_kind_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Gang] = []

    def counting(one: Gang, capacity: Capacity, *, anchors: Mapping[str, str], budget: int) -> Found | NoPlacement:
        asked.append(one)
        return place(one, capacity, anchors=anchors, budget=budget)

    monkeypatch.setattr("coterie.service.queue.queue.place", counting)
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
    (seated,) = [each for each in queue.cycle(0.0) if isinstance(each, PlacedGang)]
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


def test_a_quota_that_no_longer_keeps_a_gang_back_is_no_longer_its_reason() -> None:
    limited = replace(POOL, name="team", gpus=GpuQuota(limit=24))
    found = world(3)
    queue = Queue(found)
    queue.put(entry("other", gang(1), since=0))
    queue.put(entry("own", gang(2), since=1, pool=limited))
    queue.put(entry("late", gang(3), since=2, pool=limited))
    assert reasons(queue, 0.0) == {"late": "OverQuota"}
    found.release(("own", "g", 1), ["t0", "t1"])
    assert reasons(queue, 1.0) == {"late": "NoCapacity"}


@pytest.mark.parametrize(
    ("limit", "verdict", "used"), [(24, None, 0), (23, Verdict.WAITING, 8), (15, Verdict.IMPOSSIBLE, 8)]
)
def test_tasks_that_join_others_count_with_them_against_the_limit(
    limit: int, verdict: Verdict | None, used: int
) -> None:
    found = world(4)
    found.hold(("w", "g", 1), "main", {"t0": "n0"}, {"t0": Shape(requests=((GPU, 8),))})
    found.hold(("other", "g", 1), "main", {"t0": "n1"}, {"t0": Shape(requests=((GPU, 8),))})
    queue = Queue(found)
    joining = replace(entry("w", gang(2)), key=("w", "g", 2), anchors={"t0": "n0"})
    queue.put(replace(joining, pool=replace(POOL, gpus=GpuQuota(limit=limit))))
    (told,) = queue.cycle(0.0)
    if isinstance(told, PlacedGang):
        assert verdict is None
    else:
        assert told.decision.refusal
        refusal = told.decision.refusal
        assert (told.decision.verdict, refusal.wanted, refusal.quota) == (verdict, 16, (used, limit))


def test_gangs_of_one_kind_are_limited_by_the_version_of_the_pool_that_each_has() -> None:
    queue = Queue(world())
    few, many = (replace(POOL, gpus=GpuQuota(limit=limit)) for limit in (8, 32))
    queue.put(entry("old", gang(2), since=0.0, pool=few))
    queue.put(entry("new", gang(2), since=1.0, pool=many))
    assert placed(queue) == ["new"]


def test_a_cycle_looks_at_as_few_of_many_equal_gangs_as_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    whole_try = Queue._try

    def counted(queue: Queue, candidate: QueuedGang, *rest: Any) -> bool:
        tried.append(candidate.entry.key[1])
        return whole_try(queue, candidate, *rest)

    monkeypatch.setattr(Queue, "_try", counted)

    def looked_at(gangs: int) -> list[int]:
        """Return how many gangs are tried, and how many reasons are told, in cycles with three nodes and two freed."""
        nodes, found = world(3), list[int]()
        queue = Queue(nodes)
        for number in range(gangs):
            queue.put(QueueEntry(("w", f"g{number:04}", 1), POOL, gang(1), "NORMAL", 0.0, 1))
        for now in range(4):
            tried.clear()
            told = list(queue.cycle(now))
            found += [len(tried), sum(isinstance(each, WaitReason) for each in told)]
            for each in told:
                if isinstance(each, PlacedGang) and now:
                    nodes.release(each.entry.key, ["t0"])
            if not now:
                assert [key for key, _, _ in nodes.placements()] == [("w", f"g{number:04}", 1) for number in range(3)]
                assert found == [4, gangs - 3]  # each of the others is told once why it waits
                nodes.release(("w", "g0000", 1), ["t0"])
        return found[2:]

    assert looked_at(1600) == looked_at(200) == [2, 0, 2, 0, 2, 0]
