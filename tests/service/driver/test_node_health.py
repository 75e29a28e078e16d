"""Node health: which conditions count, grace periods, and recovery."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.gang.tree import Toleration
from coterie.service.driver.node_health import (
    HealthCondition,
    health_conditions,
    is_healthy,
    next_end,
    outlasting,
    unchanged,
    with_start_times,
)
from coterie.sources import Snapshot
from coterie.topology.cluster import GPU, Cluster, Node, Pod, Taint

OUT = Taint("broken", "yes", "NoExecute")
STAY = Taint("busy", "", "NoSchedule")
NODES = {
    "well": Node("well", {"rack": "r1"}, {GPU: 8}),
    "down": Node("down", {"rack": "r1"}, {GPU: 8}, ready=False),
    "tainted": Node("tainted", {"rack": "r1"}, {GPU: 8}, (STAY, OUT)),
    "closed": Node("closed", {"rack": "r1"}, {GPU: 8}, cordoned=True),
}
GRACE_S = 60.0


def cluster(**changes: Node) -> Cluster:
    return Cluster.of((NODES | changes).values())


def test_a_node_is_ill_when_it_is_not_ready_or_drives_tasks_off_and_not_when_it_is_cordoned() -> None:
    assert set(health_conditions(cluster())) == {HealthCondition("down"), HealthCondition("tainted", OUT)}


@pytest.mark.parametrize(
    ("tolerations", "hit"),
    [
        ((), True),
        ((Toleration("broken", "Exists"),), False),
        ((Toleration("broken", "Equal", "no"),), True),
        ((Toleration("", "Exists"),), False),
        ((Toleration("broken", "Exists", "", "NoSchedule"),), True),
    ],
)
def test_a_taint_hits_those_who_do_not_tolerate_it(*, tolerations: tuple[Toleration, ...], hit: bool) -> None:
    assert HealthCondition("tainted", OUT).hits(tolerations) is hit
    assert HealthCondition("down").hits(tolerations)


def test_an_illness_is_counted_from_its_beginning_and_anew_after_a_break() -> None:
    known = with_start_times({}, cluster(), 10.0)
    known = with_start_times(known, cluster(), 50.0)
    assert known == {HealthCondition("down"): 10.0, HealthCondition("tainted", OUT): 10.0}
    healed = with_start_times(known, cluster(down=replace(NODES["down"], ready=True)), 60.0)
    assert with_start_times(healed, cluster(), 65.0) == {
        HealthCondition("down"): 65.0,
        HealthCondition("tainted", OUT): 10.0,
    }


def test_what_outlasts_the_grace_period_is_told_once_at_its_end() -> None:
    first, second = HealthCondition("a"), HealthCondition("b")
    known = {first: 0.0, second: 30.0}
    assert next_end(known, GRACE_S, ()) == 60.0
    assert outlasting(known, GRACE_S, (), 59.9) == []
    assert outlasting(known, GRACE_S, (), 60.0) == [first]
    assert outlasting(known, GRACE_S, (first,), 89.0) == []
    assert next_end(known, GRACE_S, (first,)) == 90.0
    assert outlasting(known, GRACE_S, (first,), 500.0) == [second]
    assert next_end(known, GRACE_S, known) is None
    assert outlasting(known, 0.0, (), 30.0) == [first, second]


@pytest.mark.parametrize(
    ("node", "tolerations", "expected"),
    [
        ("well", (), True),
        ("closed", (), True),
        ("down", (), False),
        ("gone", (), False),
        ("tainted", (), False),
        ("tainted", (Toleration("broken", "Exists"),), True),
    ],
)
def test_a_node_is_well_again_when_nothing_hits_those_who_want_it(
    *, node: str, tolerations: tuple[Toleration, ...], expected: bool
) -> None:
    made = cluster()
    assert is_healthy(node, made, set(health_conditions(made)), tolerations) is expected


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (cluster(), True),
        (Cluster.of(reversed(NODES.values())), True),
        (cluster(down=NODES["well"]), False),
        (cluster(well=replace(NODES["well"], labels={"rack": "r2"})), False),
        (cluster(well=replace(NODES["well"], labels={"row": "r1"})), False),
        (cluster(well=replace(NODES["well"], allocatable={GPU: 4})), False),
        (cluster(well=replace(NODES["well"], taints=(OUT,))), False),
        (cluster(down=replace(NODES["down"], ready=True)), False),
        (cluster(closed=replace(NODES["closed"], cordoned=False)), False),
        (Cluster.of(NODES.values(), [Pod("p", "well", {GPU: 1})]), False),
    ],
)
def test_two_readings_are_the_same_when_all_that_is_read_from_them_is(*, other: Cluster, same: bool) -> None:
    assert unchanged(Snapshot(cluster()), Snapshot(other)) is same
