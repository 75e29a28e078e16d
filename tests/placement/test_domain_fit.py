"""Counts are exact: a gang of the reported size is placed, and one task more is not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.gang.tree import Gang, Group, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.domain_fit import level_fit
from coterie.placement.engine import Found, NoPlacement, place
from coterie.topology.cluster import CPU, GPU, Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.random_examples import examples

Z, R = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
TOPOLOGY = Topology.of(("zone", Z), ("rack", R))


def domains(nodes: list[Node], pods: list[Pod] | None = None) -> Domains:
    return Domains.of(Cluster.of(nodes, pods or []), TOPOLOGY)


def node(name: str, rack: str | None, gpus: int = 8, **more: bool) -> Node:
    labels = {Z: "a", R: rack} if rack else {Z: "a"}
    return Node(name, labels, {GPU: gpus, CPU: 64000}, **more)  # type: ignore[arg-type]


def gang(shape: Shape, tasks: int, level: str = "rack") -> Gang:
    path = ((level, "default"),)
    return Gang("g", (Group(path, required=True, tasks=tuple(Task(f"t{i}", shape, i) for i in range(tasks))),))


EIGHT = Shape(requests=((GPU, 8),))
FOUR = Shape(requests=((GPU, 4),))


def test_domains_come_best_first_with_what_fits_now_and_when_empty() -> None:
    seen = domains(
        [node("n1", "r1"), node("n2", "r1"), node("n3", "r2"), node("n4", "r2", cordoned=True), node("n5", "r3", 4)],
        [Pod("p", "n1", {GPU: 4}), Pod("d", "n3", {GPU: 4}, daemon=True)],
    )

    rooms = level_fit(FOUR, seen, "rack").rooms

    assert [(room.domain, room.now, room.empty, room.nodes, room.free_gpus) for room in rooms] == [
        (("a", "r1"), 3, 4, 2, 12),
        (("a", "r2"), 1, 3, 2, 4),
        (("a", "r3"), 1, 1, 1, 4),
    ]


def test_nodes_in_no_domain_are_counted_apart() -> None:
    found = level_fit(FOUR, domains([node("n1", "r1"), node("n2", None)]), "rack")

    assert (found.total.now, found.outside.now, found.outside.nodes) == (2, 2, 1)


def test_nodes_that_lack_a_finer_label_do_not_count_for_a_scheduler_that_cannot_see_them() -> None:
    seen = domains([node("n1", "r1"), node("n2", None)])

    assert level_fit(FOUR, seen, "zone").total.now == 4
    assert level_fit(FOUR, seen, "zone", labelled_only=True).total.now == 2


def test_a_resource_that_nobody_has_fits_nowhere() -> None:
    found = level_fit(Shape(requests=(("example.com/nic", 1),)), domains([node("n1", "r1")]), "rack")

    assert (found.total.now, found.total.empty) == (0, 0)


def test_a_level_without_domains_and_a_cluster_without_nodes_hold_nothing() -> None:
    assert level_fit(FOUR, domains([node("n1", None)]), "rack").rooms == ()
    assert level_fit(FOUR, domains([]), "rack").total.now == 0


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=9),
    st.integers(1, 8),
)
def test_the_engine_places_exactly_what_counting_says(spread: list[tuple[int, int, int]], gpus: int) -> None:
    nodes = [node(f"n{at}", f"r{rack}", size) for at, (rack, size, _) in enumerate(spread)]
    pods = [Pod(f"p{at}", f"n{at}", {GPU: min(size, used)}) for at, (_, size, used) in enumerate(spread)]
    seen = domains(nodes, pods)
    shape = Shape(requests=((GPU, gpus),))

    best = level_fit(shape, seen, "rack").rooms[0].now

    if best:
        assert isinstance(place(gang(shape, best), Capacity.now(seen)), Found)
    assert isinstance(place(gang(shape, best + 1), Capacity.now(seen)), NoPlacement)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 3))
def test_so_many_gangs_fit_at_once_and_no_more(racks: list[int], tasks: int) -> None:
    seen = domains([node(f"n{at}", f"r{rack}") for at, rack in enumerate(racks)])
    expected, _ = level_fit(EIGHT, seen, "rack").gangs(tasks)
    capacity = Capacity.now(seen)

    placed = 0
    while isinstance(found := place(gang(EIGHT, tasks), capacity), Found):
        capacity.take(EIGHT, found.positions.values(), [1] * tasks)
        placed += 1

    assert placed == expected
