"""The policies of simulations: where each places jobs and groups."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.placement.capacity import Capacity
from coterie.simulation.kueue import pick
from coterie.simulation.policies import POLICIES, PolicyRefusal, Spots
from coterie.simulation.rule import Rule
from coterie.topology.domains import Domains
from tests.simulation.worlds import fabric


def where(
    policy: str, domains: Domains, gpus: int, held: str = "", level: str | None = "rack"
) -> list[str] | PolicyRefusal:
    """Ask a policy for a job, with some GPUs in use: `s0-r0-n0=8 s0-r1-n0=1`."""
    capacity = Capacity.now(domains)
    rule = Rule.of(domains, level)
    for name, amount in (word.split("=") for word in held.split()):
        capacity.take(rule.shape(int(amount)), [domains.position[name]], [1])
    spots: Spots | PolicyRefusal = POLICIES[policy](rule.layout(gpus), capacity)
    return spots if isinstance(spots, PolicyRefusal) else [domains.name(spot) for spot in spots]


ONE_SPINE = fabric([[8, 8], [8, 8], [8, 8]])
TWO_SPINES = fabric([[8, 8], [8, 8]], [[8, 8], [8, 8]])


def test_first_fit_takes_the_first_rack_where_the_others_take_the_tightest() -> None:
    assert where("first-fit", ONE_SPINE, 8, "s0-r1-n0=8") == ["s0-r0-n0"]
    assert where("kueue", ONE_SPINE, 8, "s0-r1-n0=8") == ["s0-r1-n1"]
    assert where("coterie", ONE_SPINE, 8, "s0-r1-n0=8") == ["s0-r1-n1"]


def test_within_a_rack_first_fit_takes_the_first_node_where_the_others_take_the_fullest() -> None:
    one_rack = fabric([[8, 8]])

    assert where("first-fit", one_rack, 2, "s0-r0-n1=6") == ["s0-r0-n0"]
    assert where("kueue", one_rack, 2, "s0-r0-n1=6") == ["s0-r0-n1"]
    assert where("coterie", one_rack, 2, "s0-r0-n1=6") == ["s0-r0-n1"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_never_spans_two_racks_when_one_is_required(policy: str) -> None:
    assert where(policy, ONE_SPINE, 16, "s0-r0-n0=1 s0-r1-n1=1 s0-r2-n0=1") is PolicyRefusal.WAITS


@pytest.mark.parametrize("policy", POLICIES)
def test_the_groups_of_a_large_job_share_a_spine_if_one_has_room(policy: str) -> None:
    found = where(policy, TWO_SPINES, 32, "s0-r1-n0=1")

    assert found == ["s1-r0-n0", "s1-r0-n1", "s1-r1-n0", "s1-r1-n1"]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_groups_of_a_large_job_spread_if_no_spine_has_room(policy: str) -> None:
    found = where(policy, TWO_SPINES, 32, "s0-r1-n0=1 s1-r0-n0=1")

    assert found == ["s0-r0-n0", "s0-r0-n1", "s1-r1-n0", "s1-r1-n1"]


def test_kueue_chooses_for_each_group_size_alone_where_the_engine_sees_all_groups() -> None:
    # Three pods in groups of two and one. The larger alone fits both spines equally well, and the first has no room
    # for the smaller one beside it.
    held = "s0-r1-n0=8 s0-r1-n1=8 s1-r1-n0=8"

    assert where("kueue", TWO_SPINES, 24, held) == ["s0-r0-n0", "s0-r0-n1", "s1-r1-n1"]
    assert where("coterie", TWO_SPINES, 24, held) == ["s1-r0-n0", "s1-r0-n1", "s1-r1-n1"]


def test_without_a_rule_kueue_fills_nodes_with_the_least_room_first() -> None:
    assert where("kueue", ONE_SPINE, 4, "s0-r1-n1=4", None) == ["s0-r1-n1"]
    assert where("first-fit", ONE_SPINE, 4, "s0-r1-n1=4", None) == ["s0-r0-n0"]
    assert where("kueue", ONE_SPINE, 48, level=None) == list(ONE_SPINE.names)
    assert where("kueue", ONE_SPINE, 48, "s0-r0-n0=1", None) is PolicyRefusal.WAITS


def test_pods_of_two_sizes_are_placed_by_all() -> None:
    for policy in POLICIES:
        assert where(policy, ONE_SPINE, 15, "s0-r0-n0=1 s0-r1-n0=2 s0-r2-n0=8") in (
            ["s0-r0-n1", "s0-r0-n0"],
            PolicyRefusal.WAITS if policy == "kueue" else None,  # it counts both pods like the larger one
        )


@pytest.mark.parametrize(
    ("room", "wanted", "expected"),
    [
        ([3, 5, 4], 4, [(2, 4)]),
        ([3, 5, 4], 6, [(1, 5), (0, 1)]),
        ([3, 5, 4], 9, [(1, 5), (2, 4)]),
        ([3, 5, 4], 12, [(1, 5), (2, 4), (0, 3)]),
        ([3, 5, 4], 13, None),
        ([2, 2], 2, [(0, 2)]),
        ([0], 1, None),
        ([], 1, None),
    ],
)
def test_kueue_takes_the_most_room_first_and_the_least_that_suffices_last(
    room: list[int], wanted: int, expected: list[tuple[int, int]] | None
) -> None:
    assert pick(np.array(room, dtype=np.int64), wanted) == expected
