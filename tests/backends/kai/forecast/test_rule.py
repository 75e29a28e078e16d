"""KAI's allocation rule, step by step; each case is a behaviour that users of KAI meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from coterie.backends.kai.forecast import (
    ForecastPlacement,
    ForecastReason,
    ForecastRefusal,
    ForecastUnknown,
    kai_would_place,
)
from coterie.backends.kai.pod_group import LevelConstraint, PodGroupPart, pod_group_of
from coterie.gang.tree import Gang, Task
from coterie.placement.capacity import Capacity
from coterie.topology.cluster import GPU, STORAGE, Cluster, Node
from coterie.topology.domains import Domains, is_null
from coterie.topology.levels import Topology
from tests.planning.builders import drawn, gangs
from tests.property.worlds.pieces import shape
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds

RACKS = Topology.of(("rack", "r"))


def asked(cluster: str, gang: str) -> ForecastPlacement | ForecastRefusal | ForecastUnknown:
    """Ask about a gang as Coterie hands it over."""
    drawing = drawn(cluster)
    (one,) = gangs(gang, drawing)
    return kai_would_place(pod_group_of(one, drawing.topology), Capacity.now(drawing.domains()))


def by_hand(cluster: str, part: PodGroupPart) -> ForecastPlacement | ForecastRefusal | ForecastUnknown:
    """Ask about a PodGroup that Coterie would not write."""
    return kai_would_place(part, Capacity.now(drawn(cluster).domains()))


def pods(count: int, gpus: int = 8, stem: str = "t") -> tuple[Task, ...]:
    return tuple(Task(f"{stem}{index}", shape(gpu=gpus), index) for index in range(count))


def placed(answer: ForecastPlacement | ForecastRefusal | ForecastUnknown) -> ForecastPlacement:
    assert isinstance(answer, ForecastPlacement), answer
    return answer


def refused(answer: ForecastPlacement | ForecastRefusal | ForecastUnknown) -> ForecastRefusal:
    assert isinstance(answer, ForecastRefusal), answer
    return answer


ONE_RACK = "cluster zone > rack\n  zone a: rack r1 [8 8]"


def test_a_required_level_above_the_domain_that_all_nodes_share_is_never_found() -> None:
    alone = by_hand(ONE_RACK, PodGroupPart(LevelConstraint("zone"), tasks=pods(2)))

    assert refused(alone).why is ForecastReason.COMMON_DOMAIN_TOO_FINE


def test_a_preferred_level_stops_the_way_down_so_that_the_required_one_is_found() -> None:
    both = by_hand(ONE_RACK, PodGroupPart(LevelConstraint("zone", "rack"), tasks=pods(2)))

    assert placed(both).domains == {"": "a.r1"}


def test_pods_of_mixed_sizes_are_counted_as_the_largest() -> None:
    answer = refused(asked("cluster rack\n  rack r1 [8 8]", "g: 1 x 8gpu + 2 x 4gpu required=rack"))

    assert (answer.why, answer.wanted, answer.most) == (ForecastReason.NOT_ENOUGH_IN_COMMON, 3, 2)


def test_the_largest_pod_is_one_that_need_not_exist() -> None:
    cluster = "cluster rack of 8\n  rack r1 [8]\n  node r1-1 cpu=10\n"

    assert isinstance(asked(cluster, "g: 1 x 6gpu,2cpu + 1 x 2gpu,8cpu required=rack"), ForecastRefusal)
    assert isinstance(asked(cluster, "g: 1 x 6gpu,2cpu required=rack"), ForecastPlacement)


def test_where_only_some_ask_for_gpus_sums_are_compared() -> None:
    answer = asked("cluster rack\n  rack r1 [8 8]", "g: 2 x 8gpu + 2 x 4cpu required=rack")

    assert placed(answer).domains == {"": "r1"}


def test_where_only_some_ask_for_storage_sums_are_compared() -> None:
    nodes = [Node(f"n{index}", {"r": "r1"}, {GPU: 8, STORAGE: 10}) for index in range(2)]
    capacity = Capacity.now(Domains.of(Cluster.of(nodes), RACKS))
    large, *small = (*pods(1), *pods(2, 4, "s"))
    storing = replace(large, shape=replace(large.shape, requests=((STORAGE, 1), *large.shape.requests)))

    assert isinstance(
        kai_would_place(PodGroupPart(LevelConstraint("rack"), tasks=(large, *small)), capacity), ForecastRefusal
    )
    assert isinstance(
        kai_would_place(PodGroupPart(LevelConstraint("rack"), tasks=(storing, *small)), capacity), ForecastPlacement
    )


def siblings(*sizes: int) -> PodGroupPart:
    names = "abc"
    return PodGroupPart(
        parts=tuple(
            PodGroupPart(LevelConstraint("rack"), tasks=pods(size, 1, names[index]), name=names[index])
            for index, size in enumerate(sizes)
        )
    )


@pytest.mark.parametrize(("sizes", "works"), [((3, 3, 5), False), ((5, 3, 3), True)])
def test_siblings_take_their_domains_in_the_order_of_their_names_and_never_go_back(
    sizes: tuple[int, ...], *, works: bool
) -> None:
    answer = by_hand("cluster rack\n  rack r1 [6]  rack r2 [5]", siblings(*sizes))

    assert isinstance(answer, ForecastPlacement) is works
    if isinstance(answer, ForecastRefusal):
        assert (answer.part.name, answer.before, answer.most) == ("c", ("a", "b"), 3)


def test_parts_with_subgroups_come_before_parts_with_pods() -> None:
    cluster = "cluster rack\n  rack r1 [6]  rack r2 [5]"
    leaf = PodGroupPart(LevelConstraint("rack"), tasks=pods(5, 1, "a"), name="a")
    around = PodGroupPart(parts=(PodGroupPart(LevelConstraint("rack"), tasks=pods(3, 1, "b"), name="b"),), name="z")

    answer = placed(by_hand(cluster, PodGroupPart(parts=(leaf, around))))

    assert answer.domains == {"b": "r2", "a": "r1"}


def test_a_part_above_moves_to_its_next_domain_when_one_below_fails() -> None:
    cluster = """
        cluster zone > rack
          zone a: rack r1 [2 2]  rack r2 [2 2]
          zone b: rack r1 [4 4 4 4]
    """
    group = PodGroupPart(LevelConstraint("rack"), tasks=pods(4, 2), name="m")

    assert placed(by_hand(cluster, PodGroupPart(LevelConstraint("zone", "rack"), parts=(group,)))).domains == {
        "": "b.r1",
        "m": "b.r1",
    }


def test_the_domain_of_which_the_tasks_take_the_largest_share_is_tried_first() -> None:
    assert placed(asked("cluster rack\n  rack r1 [8 8]  rack r2 [8]", "g: 8gpu required=rack")).domains == {"": "r2"}


def test_equal_domains_are_tried_in_alphabetical_order() -> None:
    assert placed(asked("cluster rack\n  rack r9 [8]  rack r10 [8]", "g: 8gpu required=rack")).domains == {"": "r10"}


def test_processors_are_compared_in_whole_ones() -> None:
    cluster = """
        cluster rack
          rack r1 [8]  rack r2 [8]
          node r1-1 cpu=4
          node r2-1 cpu=4
          pod other on r2-1 gpu=0
    """
    drawing = drawn(cluster)
    drawing.nodes["r2-1"] = replace(drawing.nodes["r2-1"], allocatable={GPU: 8, "cpu": 3500})
    part = PodGroupPart(LevelConstraint("rack"), tasks=(Task("t", shape(cpu=1000)),))

    assert placed(kai_would_place(part, Capacity.now(drawing.domains()))).domains == {"": "r1"}


def test_nodes_without_every_label_are_invisible_even_to_a_preference() -> None:
    cluster = "cluster zone > rack\n  zone a: rack r1 [8]\n          rack - [8 8]"

    assert refused(asked(cluster, "g: 2 x 8gpu preferred=zone")).why is ForecastReason.NOT_ENOUGH_IN_COMMON
    assert isinstance(asked(cluster, "g: 2 x 8gpu"), ForecastPlacement)


def test_cordoned_nodes_count_as_room_until_a_pod_is_to_go_there() -> None:
    answer = refused(asked("cluster rack\n  rack r1 [8! 8]  rack r2 [4]", "g: 2 x 8gpu required=rack"))

    assert answer.why is ForecastReason.NO_NODE_FOR_A_POD


def test_cordoned_nodes_make_a_domain_look_emptier_than_it_is() -> None:
    answer = asked("cluster rack\n  rack r1 [8! 8! 8]  rack r2 [8 8]", "g: 8gpu required=rack")

    assert placed(answer).domains == {"": "r2"}


def test_a_preference_that_cannot_be_kept_spreads_over_the_emptiest_domains_first() -> None:
    answer = placed(asked("cluster rack\n  rack r1 [2]  rack r2 [8]  rack r3 [4]", "g: 12 x 1gpu preferred=rack"))

    assert answer.domains == {"": "root"}
    assert sorted(answer.nodes.values()) == ["r2-1"] * 8 + ["r3-1"] * 4


def test_of_more_than_ten_domains_several_have_the_same_score() -> None:
    racks = "  ".join(f"rack r{index:02} [8]" for index in range(20))

    answer = placed(asked(f"cluster rack\n  {racks}  rack s [9]", "g: 12 x 1gpu preferred=rack"))

    # Rack s is the emptiest and alone in the highest step; the next step down has two racks, filled by name.
    assert sorted(set(answer.nodes.values())) == ["r18-1", "s-1"]


def test_a_pod_goes_to_the_node_with_the_least_free_gpus() -> None:
    assert placed(asked("cluster\n  [8 2 4]", "g: 2gpu")).nodes == {"g-0": "x-2"}


def test_a_pod_without_gpus_goes_to_a_node_without() -> None:
    assert placed(asked("cluster\n  [8 . 4]", "g: 2cpu")).nodes == {"g-0": "x-2"}


def test_one_pod_after_the_other_can_strand_the_last() -> None:
    answer = asked("cluster\n  [4 3]", "g: 1 x 3gpu + 1 x 4gpu")
    assert isinstance(answer, ForecastPlacement)

    answer = asked("cluster\n  [10 10]", "g: 2 x 4gpu + 4 x 3gpu")
    assert refused(answer).why is ForecastReason.NO_NODE_FOR_A_POD


def test_pods_above_the_minimum_come_after_it_and_do_not_hold_it_back() -> None:
    tasks = [replace(task, needed=task.rank < 2) for task in pods(4, 4)]
    gang = Gang("g", tasks=tuple(tasks))
    drawing = drawn("cluster rack\n  rack r1 [4 4 4]")

    answer = placed(kai_would_place(pod_group_of(gang, drawing.topology), Capacity.now(drawing.domains())))

    assert sorted(answer.nodes) == ["t0", "t1", "t2"]
    assert answer.waiting == ("t3",)


def elastic(name: str, gpus: int, total: int, least: int) -> PodGroupPart:
    tasks = tuple(replace(task, needed=task.rank < least) for task in pods(total, gpus, name))
    return PodGroupPart(LevelConstraint("rack"), tasks=tasks, name=name)


def test_leaves_grow_in_turn_and_the_first_that_cannot_ends_it() -> None:
    parts = (elastic("a", 4, 2, 1), elastic("b", 1, 3, 1))

    answer = placed(by_hand("cluster rack\n  rack r1 [4]  rack r2 [4]", PodGroupPart(parts=parts)))

    assert answer.waiting == ("a1", "b1", "b2")


def test_pods_above_the_minimum_stay_in_the_required_domain() -> None:
    answer = placed(by_hand("cluster rack\n  rack r1 [1 1]  rack r2 [8]", PodGroupPart(parts=(elastic("a", 1, 3, 2),))))

    assert answer.nodes == {"a0": "r1-1", "a1": "r1-2"}


def test_tasks_that_run_already_choose_the_required_domain() -> None:
    drawing = drawn("cluster rack\n  rack r1 [8]  rack r2 [8]")
    part = PodGroupPart(LevelConstraint("rack"), tasks=pods(2))

    for node, expected in (("r1-1", ForecastPlacement), ("r2-1", ForecastPlacement)):
        answer = kai_would_place(part, Capacity.now(drawing.domains()), running={"t0": node})
        assert isinstance(answer, expected)
        assert answer.nodes == {"t0": node, "t1": node}


def test_label_values_with_dots_can_make_two_domains_one() -> None:
    levels = Topology.of(("zone", "z"), ("rack", "r"))
    nodes = [Node("n1", {"z": "a", "r": "b.c"}, {GPU: 8}), Node("n2", {"z": "a.b", "r": "c"}, {GPU: 8})]
    capacity = Capacity.now(Domains.of(Cluster.of(nodes), levels))

    assert placed(kai_would_place(PodGroupPart(LevelConstraint("rack"), tasks=pods(2)), capacity)).domains == {
        "": "a.b.c"
    }


def test_an_exhausted_budget_is_no_answer() -> None:
    root = PodGroupPart(tasks=pods(3))

    assert kai_would_place(root, Capacity.now(drawn("cluster\n  [8 8 8]").domains()), steps=2) == ForecastUnknown()


@settings(deadline=None)
@given(small_worlds())
def test_what_kai_places_fits_and_keeps_every_promise(world: EngineQuestion) -> None:
    domains = world.domains
    # KAI takes a null value for a domain like any other.
    assume(not any(is_null(label, value) for node in world.nodes for label, value in node.labels.items()))
    assume(not world.anchors)

    answer = kai_would_place(pod_group_of(world.gang, world.topology), Capacity.now(domains))

    if isinstance(answer, ForecastPlacement):
        capacity = Capacity.now(domains)
        for task in world.gang.all_tasks():
            if task.name in answer.nodes:
                position = domains.position[answer.nodes[task.name]]
                assert capacity.fit(task.shape).fits[position] > 0
                capacity.take(task.shape, [position], [1])
        for group in world.gang.walk():
            tier = domains.tiers[world.topology.index(group.level)]
            used = {tier.of[domains.position[answer.nodes[task.name]]] for task in group.all_tasks() if task.needed}
            assert not group.required or (len(used) <= 1 and -1 not in used)
