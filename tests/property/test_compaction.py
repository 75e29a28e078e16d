"""The preference for few domains is a tie-break: it costs no placement and no preferred level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.gang.tree import Gang, Group, Task
from coterie.placement import engine
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.topology.cluster import GPU, Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.placement import twin
from tests.property.judge import answer
from tests.property.worlds.pieces import GIB, LEVELS, node, shape
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds
from tests.random_examples import examples

randoms = st.randoms(use_true_random=False)
many = settings(max_examples=examples(120), deadline=None, derandomize=True)


@given(small_worlds())
@many
def test_few_domains_cost_neither_a_placement_nor_a_preference(world: EngineQuestion) -> None:
    plain, compact = _without_tie_break(world), answer(world)
    assert type(plain) is type(compact), f"{world}"
    if isinstance(plain, NoPlacement) and isinstance(compact, NoPlacement):
        assert plain.proved == compact.proved, f"{world}"
    if isinstance(plain, Found) and isinstance(compact, Found):
        assert twin.verify(world.gang, world.domains, compact, world.anchors, world.room) == [], f"{world}"
        assert compact.extra == plain.extra, f"{world}"
        assert compact.optimal == plain.optimal, f"{world}"


@given(randoms)
@many
def test_equal_tasks_that_ask_for_nothing_use_the_fewest_zones(rng: Random) -> None:
    domains, tasks = _two_levels(rng)
    found = place(Gang("gang", (), tasks), Capacity.now(domains))
    room = _room(domains, 0)
    assert isinstance(found, Found) == (sum(room) >= len(tasks))
    if isinstance(found, Found):
        assert len(_used(domains, 0, found)) == _fewest(room, len(tasks))


@given(randoms)
@many
def test_equal_tasks_in_one_zone_use_the_fewest_racks_that_any_zone_offers(rng: Random) -> None:
    domains, tasks = _two_levels(rng)
    group = Group((("zone", "all"),), required=True, tasks=tasks)
    found = place(Gang("gang", (group,), ()), Capacity.now(domains))
    if isinstance(found, Found):
        room, zone_of = _room(domains, 1), domains.tiers[1].parent
        offers = [
            _fewest([room[rack] for rack in range(len(room)) if zone_of[rack] == zone], len(tasks))
            for zone, there in enumerate(_room(domains, 0))
            if there >= len(tasks)
        ]
        assert len(_used(domains, 1, found)) == min(offers)


def _without_tie_break(world: EngineQuestion) -> Found | NoPlacement:
    """Ask an engine that keeps to the constraints and leaves the rest to the packer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._Question, "_compact", lambda _question, _limits: None)
        patch.setattr(engine, "arrange", lambda packer, items, _near: packer.pack(items))
        return answer(world)


def _two_levels(rng: Random) -> tuple[Domains, tuple[Task, ...]]:
    """Return a cluster of zones and racks, partly used, and equal tasks of one GPU."""
    nodes = [
        node(f"n{zone}-{rack}-{number}", {"zone": f"z{zone}", "rack": f"r{rack}"}, rng.randint(0, 4), 64_000, 64 * GIB)
        for zone in range(rng.randint(1, 4))
        for rack in range(rng.randint(1, 4))
        for number in range(2 if zone == rack == 0 else rng.randint(1, 3))
    ]
    tasks = tuple(Task(f"t{number}", shape(gpu=1)) for number in range(rng.randint(1, 30)))
    return Domains.of(Cluster.of(nodes), Topology.of(*(pair for pair in LEVELS if pair[0] in {"zone", "rack"}))), tasks


def _room(domains: Domains, level: int) -> list[int]:
    """Return the GPUs of each domain of a level."""
    tier, cluster = domains.tiers[level], domains.cluster
    gpus = cluster.allocatable[cluster.resource(GPU)][domains.order]
    return [int(gpus[start:end].sum()) for start, end in zip(tier.start, tier.end, strict=True)]


def _used(domains: Domains, level: int, found: Found) -> set[int]:
    return {int(domains.tiers[level].of[position]) for position in found.positions.values()}


def _fewest(room: Sequence[int], wanted: int) -> int:
    """Return how many domains it takes: the largest first."""
    for count, so_far in enumerate(accumulate(sorted(room, reverse=True)), start=1):
        if so_far >= wanted:
            return count
    raise AssertionError
