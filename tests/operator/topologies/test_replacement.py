"""Steps towards KAI's Topology: made, repaired, exchanged without a gap, and never somebody else's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coterie.operator.topologies.replacement import Creation, Exchange, Repair, interim_name
from tests.operator.topologies.world import KAI, World, pod_group, topology

ZONE, RACK, HOST = "zone", "rack", "kubernetes.io/hostname"


def made(*keys: str) -> World:
    world = World()
    world.finish(topology(*keys))
    return world


def test_a_missing_topology_is_made_and_belongs_to_its_cluster_topology() -> None:
    world = made(ZONE, RACK)

    assert set(world.topologies) == {"hall"}
    found = world.topologies["hall"]
    assert KAI.labels(found) == (ZONE, RACK)
    owner = found["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("ClusterTopology", "hall", "u1", True)
    assert world.step(topology(ZONE, RACK)) is None


def test_a_topology_of_somebody_else_is_left_alone() -> None:
    world = World({"hall": {**KAI.manifest("hall", "other", [ZONE]), "metadata": {"name": "hall", "uid": "theirs"}}})

    assert world.step(topology(ZONE, RACK)) is None


def test_a_topology_of_a_former_cluster_topology_of_that_name_is_left_to_the_garbage_collector() -> None:
    world = made(ZONE)

    assert world.step(topology(ZONE, RACK, uid="u2")) is None


def test_changed_metadata_is_repaired_and_what_others_added_stays() -> None:
    world = made(ZONE)
    metadata = world.topologies["hall"]["metadata"]
    metadata["labels"] = {"team": "a"}
    metadata["ownerReferences"] = []

    step = world.step(topology(ZONE))
    assert isinstance(step, Repair)
    world.finish(topology(ZONE))
    assert world.topologies["hall"]["metadata"]["labels"] == {"team": "a", "app.kubernetes.io/managed-by": "coterie"}
    assert world.topologies["hall"]["metadata"]["ownerReferences"][0]["uid"] == "u1"


def test_without_waiting_work_the_levels_are_exchanged_at_once() -> None:
    world = made(ZONE)

    assert isinstance(world.step(topology(ZONE, RACK)), Exchange)


def test_levels_that_kai_refuses_leave_the_topology_as_it_is() -> None:
    world = made(ZONE)

    assert world.step(topology(HOST, ZONE)) is None
    assert KAI.labels(world.topologies["hall"]) == (ZONE,)


def test_a_topology_that_is_being_deleted_is_waited_for() -> None:
    world = made(ZONE)
    world.topologies["hall"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert world.step(topology(ZONE, RACK)) is None


def test_waiting_work_sees_a_topology_at_every_moment_of_an_exchange() -> None:
    world = made(ZONE)
    world.groups = {"waits": pod_group("waits", "hall", "hall"), "runs": pod_group("runs", "hall")}
    world.waiting = {"waits"}
    wanted = topology(ZONE, RACK)
    seen = []
    while (step := world.step(wanted)) is not None:
        for _ in world.carry_out(step):
            assert world.lost() == set()
            seen.append(dict(KAI.references(world.groups["waits"])))

    interim = interim_name("hall", (ZONE, RACK))
    assert {
        "/spec/topologyConstraint/topology": interim,
        "/spec/subGroups/0/topologyConstraint/topology": interim,
    } in seen
    assert set(world.topologies) == {"hall"}
    assert KAI.labels(world.topologies["hall"]) == (ZONE, RACK)
    assert {name for group in world.groups.values() for name in KAI.references(group).values()} == {"hall"}


def test_work_that_was_placed_during_an_exchange_is_pointed_back_as_well() -> None:
    world = made(ZONE)
    world.groups, world.waiting = {"waits": pod_group("waits", "hall")}, {"waits"}
    wanted = topology(ZONE, RACK)
    while KAI.references(world.groups["waits"])["/spec/topologyConstraint/topology"] == "hall":
        step = world.step(wanted)
        assert step is not None
        for _ in world.carry_out(step):
            pass
    world.waiting = set()
    world.finish(wanted)

    assert set(KAI.references(world.groups["waits"]).values()) == {"hall"} == set(world.topologies)


@given(
    levels=st.lists(st.permutations([ZONE, RACK, "block"]), min_size=1, max_size=4),
    kills=st.lists(st.integers(0, 3), max_size=12),
    arrivals=st.lists(st.integers(0, 12), max_size=3),
)
def test_killed_anywhere_and_changed_again_the_end_is_the_same(
    levels: list[list[str]], kills: list[int], arrivals: list[int]
) -> None:
    """The levels change once more whenever the operator is killed; old work waits throughout and is never lost."""
    world = made(ZONE)
    world.groups, world.waiting = {"old": pod_group("old", "hall", "hall")}, {"old"}
    wanted = topology(*levels[0])
    for turn, writes in enumerate(kills):
        if turn in arrivals:
            world.groups[f"new{turn}"] = pod_group(f"new{turn}", "hall")
        step = world.step(wanted)
        if step is None:
            break
        for number, _ in enumerate(world.carry_out(step)):
            assert world.lost() == set()
            if number >= writes:
                break
        wanted = topology(*levels[turn % len(levels)])
    world.finish(wanted)

    assert set(world.topologies) == {"hall"}
    assert KAI.labels(world.topologies["hall"]) == wanted.keys
    assert {name for group in world.groups.values() for name in KAI.references(group).values()} == {"hall"}


def test_an_operator_killed_between_deletion_and_creation_makes_the_topology_when_it_returns() -> None:
    world = made(ZONE)
    step = world.step(topology(ZONE, RACK))
    assert step is not None
    next(iter(world.carry_out(step)))
    assert "hall" not in world.topologies

    assert isinstance(world.step(topology(ZONE, RACK)), Creation)
