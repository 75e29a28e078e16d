"""Holdings of the queue: capacity and devices are given once and returned once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.config.configuration import Pool
from coterie.gang.tree import Shape
from coterie.placement.capacity import Capacity
from coterie.service.queue.holdings import BackendHoldings, TaskHolding
from coterie.topology.cluster import CPU, GPU, GPUS, Cluster, Member, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.random_examples import examples

RACK = Pool("racks", "lab", "local", topology=Topology.of(("rack", "rack")))
FLAT = Pool("flat", "lab", "local")
EIGHT = Shape(requests=((GPU, 8),))
TWO = Shape(requests=((CPU, 1000), (GPU, 2)))


def cluster(nodes: int = 4, pods: tuple[Pod, ...] = ()) -> Cluster:
    return Cluster.of([Node(f"n{n}", {"rack": f"r{n // 2}"}, {GPU: 8, CPU: 64000}) for n in range(nodes)], pods)


def test_pools_that_share_nodes_count_each_node_once() -> None:
    world = BackendHoldings(cluster(1))
    assert world.capacity(FLAT).fit(EIGHT).total == 1
    world.hold(("w", "g", 1), RACK.name, {"t": "n0"}, {"t": EIGHT})
    assert world.capacity(FLAT).fit(EIGHT).total == 0
    assert world.capacity(RACK).fit(EIGHT).total == 0
    assert (world.gpus("racks"), world.gpus("flat")) == (8, 0)


def test_devices_are_given_lowest_first_and_never_twice() -> None:
    world = BackendHoldings(cluster(1))
    first = world.hold(("w", "g", 1), "p", {"a": "n0", "b": "n0"}, {"a": TWO, "b": TWO})
    assert [one.gpus for one in first] == [(0, 1), (2, 3)]
    world.release(("w", "g", 1), ["a"])
    second = world.hold(("v", "g", 1), "p", {"c": "n0"}, {"c": TWO})
    assert second[0].gpus == (0, 1)


@pytest.mark.parametrize("kind", GPUS)
def test_what_pods_of_others_hold_is_not_given_away(kind: str) -> None:
    two = Shape(requests=((kind, 2),))
    world = BackendHoldings(Cluster.of([Node("n0", {}, {kind: 8})], [Pod("other", "n0", {kind: 6})]))
    (held,) = world.hold(("w", "g", 1), "p", {"a": "n0"}, {"a": two})
    assert held.gpus == (0, 1)
    assert world.gpus("p") == 2
    assert world.capacity(FLAT).fit(two).total == 0


def test_what_is_held_already_is_not_taken_again() -> None:
    world = BackendHoldings(cluster(1))
    held = world.hold(("w", "g", 1), "p", {"a": "n0"}, {"a": TWO})
    assert world.restore(("w", "g", 1), "p", held) == ()
    assert world.gpus("p") == 2
    assert world.capacity(FLAT).fit(TWO).total == 3


def test_a_node_that_is_gone_holds_nothing_and_gives_nothing_back() -> None:
    big, small = BackendHoldings(cluster(2)), BackendHoldings(cluster(1))
    held = big.hold(("w", "g", 1), "p", {"a": "n0", "b": "n1"}, {"a": TWO, "b": TWO})
    small.restore(("w", "g", 1), "p", held)
    assert small.gpus("p") == 2
    small.release(("w", "g", 1), ["a", "b"])
    assert (small.gpus("p"), list(small.holdings())) == (0, [])


def test_closed_nodes_take_nobody_and_open_again_as_they_were() -> None:
    world = BackendHoldings(cluster())
    world.hold(("w", "g", 1), "p", {"a": "n0"}, {"a": TWO})
    before = world.capacity(RACK).free.copy()
    with world.closed(["n0", "n1", "unknown"]):
        assert world.capacity(RACK).fit(EIGHT).total == 2
    assert (world.capacity(RACK).free == before).all()
    assert world.capacity(RACK).fit(EIGHT).total == 3


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=40))
def test_live_views_equal_views_made_afresh(steps: list[tuple[int, int, bool]]) -> None:
    world = BackendHoldings(cluster())
    world.capacity(FLAT).fit(TWO)
    for number, node, take in steps:
        key = (f"w{number}", "g", 1)
        free = world.capacity(RACK).fit(TWO).fits[world.capacity(RACK).domains.position[f"n{node}"]]
        if take and free and not world.held(key):
            world.hold(key, "p", {"t": f"n{node}"}, {"t": TWO})
        else:
            world.release(key, ["t"])
    for pool in (FLAT, RACK):
        fresh = Capacity.now(Domains.of(world.cluster, pool.topology))
        for one in world.holdings():
            fresh.take(one.shape, [fresh.domains.position[one.node]], [1])
        live = world.capacity(pool)
        assert (live.free == fresh.free).all()
        assert (live.fit(TWO).fits == fresh.fit(TWO).fits).all()
    used: dict[str, list[int]] = {}
    for one in world.holdings():
        used.setdefault(one.node, []).extend(one.gpus)
    assert all(len(set(gpus)) == len(gpus) for gpus in used.values())
    assert world.gpus("p") == 2 * sum(1 for _ in world.holdings())
    assert np.all(world.capacity(FLAT).free >= 0)


@pytest.mark.parametrize("pool", [FLAT, RACK])
def test_domains_of_a_node_are_those_of_the_pool(pool: Pool) -> None:
    assert BackendHoldings(cluster()).domains(pool, "n3") == ({"rack": "r1"} if pool is RACK else {})
    assert BackendHoldings(cluster()).domains(pool, "gone") == {}


def test_a_task_that_a_live_pod_stands_for_is_counted_once() -> None:
    own = Pod("n/w-t", "n0", {GPU: 8}, member=Member("w", "g", "t"))
    world = BackendHoldings(cluster(2, (own,)))
    assert world.capacity(FLAT).fit(EIGHT).total == 1

    world.restore(("w", "g", 1), "p", [TaskHolding("t", "n0", EIGHT)])

    assert world.capacity(FLAT).fit(EIGHT).total == world.capacity(RACK).fit(EIGHT).total == 1
    assert world.capacity(FLAT).free.min() >= 0
    assert world.vacant(FLAT).fit(EIGHT).total == 2
    assert world.gpus("p") == 8

    # The pod is still there until a snapshot comes without it.
    world.release(("w", "g", 1), ["t"])
    assert world.capacity(FLAT).fit(EIGHT).total == 1


@pytest.mark.parametrize(
    "pod",
    [
        Pod("n/ending", "n0", {GPU: 8}, member=Member("w", "g", "t"), terminating=True),
        Pod("n/elsewhere", "n0", {GPU: 8}, member=Member("w", "g", "other")),
        Pod("n/foreign", "n0", {GPU: 8}),
    ],
)
def test_other_pods_count_beside_what_is_held(pod: Pod) -> None:
    world = BackendHoldings(cluster(2, (pod,)))
    world.restore(("w", "g", 1), "p", [TaskHolding("t", "n1", EIGHT)])
    assert world.capacity(FLAT).fit(EIGHT).total == 0
