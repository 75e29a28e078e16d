"""The order of sibling subgroups for KAI: the largest that must share one domain comes first."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from coterie.backends.kai import pod_group
from coterie.backends.kai.forecast import ForecastPlacement, kai_would_place
from coterie.backends.kai.pod_group import PodGroupPart, is_bound, pod_group_of, size
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, Cluster, Node
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.kai import random_clusters
from tests.planning.builders import drawn, gangs

TOPOLOGY = Topology.of(("zone", "example.com/zone"), ("rack", "example.com/rack"))
WORLDS = 300


@dataclass(frozen=True)
class GangOnCapacity:
    """A gang and the capacity that it is to be placed on."""

    gang: Gang
    cluster: Cluster
    topology: Topology = TOPOLOGY

    @property
    def capacity(self) -> Capacity:
        return Capacity.now(Domains.of(self.cluster, self.topology))

    @property
    def fits(self) -> bool:
        return isinstance(place(self.gang, self.capacity), Found)

    def is_placed(self) -> bool:
        return isinstance(kai_would_place(pod_group_of(self.gang, self.topology), self.capacity), ForecastPlacement)


def siblings(seed: int) -> GangOnCapacity:
    """Return a gang of zone and rack groups, on a cluster that is often just large enough."""
    rng = random.Random(seed)  # noqa: S311 - a seed makes a world
    made: list[Task] = []

    def tasks(most: int) -> tuple[Task, ...]:
        first = len(made)
        ranks = range(first, first + rng.randint(1, most))
        made.extend(Task(f"t{rank}", Shape(((GPU, 1),)), rank=rank) for rank in ranks)
        return tuple(made[first:])

    def group(name: str) -> Group:
        zone: Path = (("zone", name),)
        if rng.random() < 0.25:
            return Group((("rack", name),), required=True, tasks=tasks(5))
        racks = tuple(
            Group((*zone, ("rack", f"r{index}")), required=rng.random() < 0.85, tasks=tasks(4))
            for index in range(rng.randint(1, 3))
        )
        return Group(zone, required=rng.random() < 0.9, groups=racks)

    gang = Gang("g", tuple(group(name) for name in "xyz"[: rng.randint(2, 3)]))
    nodes = [
        Node(
            f"n{zone}-{rack}-{index}",
            {"example.com/zone": f"z{zone}", "example.com/rack": f"r{zone}-{rack}"},
            {GPU: rng.choice((1, 1, 2, 4)), CPU: 64_000, MEMORY: 1 << 40, PODS: 110},
        )
        for zone in range(rng.randint(1, 3))
        for rack in range(rng.randint(1, 4))
        for index in range(rng.randint(1, 4))
    ]
    return GangOnCapacity(gang, Cluster.of(nodes))


def largest_first(part: PodGroupPart, _: Topology) -> tuple[int, ...]:
    """Return the sort key that looks at the whole of a sibling only."""
    freedom = 0 if is_bound(part) else 1 if any(found.constraint for found, _ in part.walk()) else 2
    return (freedom, *(-amount for amount in size(part)), 0 if part.parts else 1)


def test_the_sibling_with_the_most_for_one_domain_comes_before_one_that_may_be_split() -> None:
    drawing = drawn("cluster zone > rack\n  zone a: rack a1 [8 8]\n  zone b: rack b1 [8]  rack b2 [8]")
    (gang,) = gangs(
        """
        g:
          a: required=zone
            one: 2 x 8gpu required=rack
          b: required=zone
            one: 1 x 8gpu required=rack
            two: 1 x 8gpu required=rack
        """,
        drawing,
    )
    domains = drawing.domains()
    root = pod_group_of(gang, domains.topology)

    assert [[task.shape.amount(GPU) for task in part.all_tasks()] for part in root.parts] == [[8, 8], [8, 8]]
    assert [len(part.parts) for part in root.parts] == [1, 2], "the pods of one rack come first, in a subgroup"
    assert isinstance(kai_would_place(root, Capacity.now(domains)), ForecastPlacement)


def test_of_equal_pieces_the_one_for_the_finer_level_comes_first() -> None:
    drawing = drawn("cluster zone > rack\n  zone a: rack a1 [8 8]\n  zone b: rack b1 [8]  rack b2 [8]")
    (gang,) = gangs("g:\n  a: 2 x 8gpu required=zone\n  b: 2 x 8gpu required=rack", drawing)
    domains = drawing.domains()
    root = pod_group_of(gang, domains.topology)

    assert [part.constraint.required for part in root.parts] == ["rack", "zone"]
    assert isinstance(kai_would_place(root, Capacity.now(domains)), ForecastPlacement)


def test_more_gangs_are_placed_than_with_the_largest_sibling_first(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [world for world in map(siblings, range(WORLDS)) if world.fits]
    ours = [world.is_placed() for world in worlds]
    monkeypatch.setattr(pod_group, "_turn", largest_first)
    counted = Counter(zip(ours, (world.is_placed() for world in worlds), strict=True))

    # No order of siblings is right for all clusters. Of 2,343 such worlds, 20 are placed only by this order, and 3 only
    # by the other.
    assert counted[True, False] > 2 * counted[False, True], counted


def test_no_random_gang_waits_that_the_largest_sibling_first_would_place(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        GangOnCapacity(one.gang, random_clusters.cluster(one), one.topology)
        for one in map(random_clusters.case, range(WORLDS))
    ]
    ours = [world.is_placed() for world in cases]
    monkeypatch.setattr(pod_group, "_turn", largest_first)
    lost = [index for index, world in enumerate(cases) if not ours[index] and world.is_placed()]

    assert lost == []
