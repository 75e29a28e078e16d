"""Equivalent failures are searched once: followers are equivalent only if they agree in all that matters."""

from __future__ import annotations

from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang, Group, Task
from coterie.placement.capacity import Capacity
from coterie.placement.family import decide_family
from tests.planning.builders import drawn
from tests.property.worlds.pieces import shape

ONE = shape(gpu=1)


def follower(name: str, rack: str) -> Gang:
    """Return a gang of one task in a rack group that other followers may share."""
    group = Group((("rack", rack),), required=True, tasks=(Task(f"{name}-0", ONE),))
    return Gang(name, (group,), follows="leader")


def test_a_follower_that_shares_a_full_rack_fails_for_itself_alone() -> None:
    """Two followers share rack group a, for which there is room for one task; the third has group b for itself."""
    domains = drawn("cluster rack\n  rack r1 [1]\n  rack r2 [1]\n  rack r3 [1]").domains()
    family = [
        Gang("leader", tasks=(Task("leader-0", ONE),)),
        follower("f1", "a"),
        follower("f2", "a"),
        follower("f3", "b"),
    ]
    placed = decide_family(family, Capacity.now(domains), Capacity.empty(domains))

    assert [bool(one.found) for one in placed] == [True, True, False, True]


def test_gangs_are_alike_only_if_tasks_at_the_same_place_in_the_tree_already_run() -> None:
    def gang(pair: tuple[str, ...], single: tuple[str, ...]) -> Gang:
        groups = (("a", pair), ("b", single))
        return Gang("g", tuple(Group((("rack", name),), required=True, tasks=_tasks(some)) for name, some in groups))

    one, other = gang(("t0", "t1"), ("t2",)), gang(("t1", "t2"), ("t0",))

    assert kind_of(one) == kind_of(other)
    assert kind_of(one, anchors={"t0": "n"}) == kind_of(one, anchors={"t1": "n"})
    assert kind_of(one, anchors={"t0": "n"}) != kind_of(one, anchors={"t0": "m"})
    assert kind_of(one, anchors={"t0": "n"}) != kind_of(other, anchors={"t0": "n"})


def _tasks(names: tuple[str, ...]) -> tuple[Task, ...]:
    return tuple(Task(name, ONE) for name in names)
