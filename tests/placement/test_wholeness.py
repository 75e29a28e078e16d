"""Whole nodes, racks and zones stay whole where a job can go elsewhere."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from coterie.gang.tree import Gang, Group, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.topology.cluster import GPU, Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.planning.builders import drawn, gangs

RACK = Topology.of(("rack", "rack"))


def nodes_of(rows: str, text: str) -> list[str]:
    """Return the nodes of the tasks of a gang, in order."""
    drawing = drawn(f"cluster zone > rack of 8\n  {rows}")
    (gang,) = gangs(text, drawing)
    found = place(gang, Capacity.now(drawing.domains()))
    assert isinstance(found, Found)
    return sorted(found.nodes.values())


@pytest.mark.parametrize("second", ["6 8", "8 6"])
def test_a_pod_goes_where_it_breaks_up_no_whole_node(second: str) -> None:
    """The first rack holds one such pod and the second two; in the second there is a node that it fits exactly."""
    rows = f"zone a: rack r1 [8 4]  rack r2 [{second}]"

    assert nodes_of(rows, "g: 1 x 6gpu required=rack") == [f"a-r2-{second.split().index('6') + 1}"]


def test_a_pod_breaks_up_a_whole_node_rather_than_an_untouched_rack() -> None:
    rows = "zone a: rack r1 [8 8]  rack r2 [8 2]"

    assert nodes_of(rows, "g: 1 x 6gpu required=rack") == ["a-r2-1"]


def test_the_fullest_zone_goes_before_the_tightest_rack() -> None:
    rows = "zone a: rack r1 [3 3]  rack r2 [. .]\n  zone b: rack r1 [2 .]  rack r2 [8 8]"

    assert nodes_of(rows, "g: 1 x 2gpu required=rack")[0].startswith("a-r1")


def test_pods_with_a_node_each_count_the_whole_nodes_they_break_up() -> None:
    """Both racks have two nodes that take a pod; in the second one of them is whole, in the first both are."""
    rows = "zone a: rack r1 [8 8 1]  rack r2 [8 6 6 .]"

    assert nodes_of(rows, "g: 2 x 5gpu required=rack") == ["a-r2-2", "a-r2-3"]


def test_pods_that_share_nodes_still_go_to_the_tightest_rack() -> None:
    rows = "zone a: rack r1 [8 8]  rack r2 [8 2]"

    assert {node[:4] for node in nodes_of(rows, "g: 10 x 1gpu required=rack")} == {"a-r2"}


def test_the_index_kept_by_deltas_is_the_one_made_anew() -> None:
    rng = Random(7)  # noqa: S311 - drawn, not secret
    nodes = [
        Node(f"n{n}", {"zone": f"z{n // 6}", "rack": f"r{n // 3}"} if n % 7 else {}, {GPU: rng.choice((4, 8, 8))})
        for n in range(24)
    ]
    domains = Domains.of(Cluster.of(nodes), Topology.of(("zone", "zone"), ("rack", "rack")))
    capacity = Capacity.now(domains)
    kept = capacity.wholeness()
    assert capacity.domains.node_gpus == 8
    for level in (0, 1, 0):
        assert kept.gpus[level].sum() >= 8 * kept.whole[level].sum(), "asked for, and kept up to date from here on"
        for _ in range(30):
            capacity.take(Shape(requests=((GPU, rng.randint(1, 4)),)), [rng.randrange(24)], [rng.choice((1, 1, -1))])
    fresh = capacity.copy().wholeness()
    assert np.array_equal(kept.nodes, fresh.nodes)
    for level in (0, 1):
        assert np.array_equal(kept.gpus[level], fresh.gpus[level])
        assert np.array_equal(kept.whole[level], fresh.whole[level])


def test_what_a_gang_has_already_broken_up_itself_is_no_longer_whole() -> None:
    rows = "zone a: rack r1 [8 8]  rack r2 [8 8]\n  zone b: rack r1 [8 8]"
    text = "g:\n  a: 1 x 8gpu required=rack\n  b: 1 x 8gpu required=rack"

    assert nodes_of(rows, text) == ["b-r1-1", "b-r1-2"]


def test_gpus_of_any_make_count() -> None:
    """The first test again, with GPUs of AMD."""
    amd = "amd.com/gpu"
    free = {"n1": ("r1", 8), "n2": ("r1", 4), "n3": ("r2", 8), "n4": ("r2", 6)}
    nodes = [Node(name, {"rack": rack}, {amd: 8}) for name, (rack, _) in free.items()]
    pods = [Pod(f"p-{name}", name, {amd: 8 - left}, "other") for name, (_, left) in free.items()]
    group = Group((("rack", "all"),), required=True, tasks=(Task("t", Shape(requests=((amd, 6),))),))
    found = place(Gang("g", (group,)), Capacity.now(Domains.of(Cluster.of(nodes, pods), RACK)))

    assert isinstance(found, Found)
    assert found.nodes == {"t": "n4"}
