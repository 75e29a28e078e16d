"""Groups of one workflow in the queue: those submitted together are placed jointly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from coterie.config.configuration import GpuQuota, Pool
from coterie.gang import edits
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.service.queue.holdings import BackendHoldings
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry, without_nodes
from coterie.topology.cluster import GPU, Cluster, Node
from tests.service.queue.builders import LEVELS, POOL, entry, gang, placed


def racks(*sizes: int) -> BackendHoldings:
    nodes = [
        Node(f"r{rack}-{n}", {"rack": f"r{rack}"}, {GPU: 8}) for rack, size in enumerate(sizes) for n in range(size)
    ]
    return BackendHoldings(Cluster.of(nodes))


def party(queue: Queue, groups: Mapping[str, Gang], pool: Pool = POOL, number: int = 1, name: str = "w") -> None:
    """Let groups of one workflow wait, in this order."""
    for group, one in groups.items():
        tasks = {task.name: f"{group}-{task.name}" for task in one.all_tasks()}
        named = edits.mapped(one, lambda task, tasks=tasks: replace(task, name=tasks[task.name]))  # type: ignore[misc]
        queue.put(QueueEntry((name, group, 1), pool, named, "NORMAL", 0.0, number))


def seats(queue: Queue, now: float = 0.0) -> dict[str, list[str]]:
    """Run a cycle; return the nodes of every group that was placed, in turn."""
    cycle = [each for each in queue.cycle(now) if isinstance(each, PlacedGang)]
    return {each.entry.key[1]: sorted(one.node for one in each.held) for each in cycle}


# The first goes to the tighter rack, which is the only one that does for the second.
NARROW = {"free": gang(1), "picky": without_nodes(gang(2, rack=True), ["r1-0", "r1-1", "r1-2"])}


def test_a_group_that_had_a_choice_moves_for_one_of_its_workflow_that_has_none() -> None:
    alone = Queue(racks(2, 3))
    party(alone, {"free": NARROW["free"]})
    assert seats(alone) == {"free": ["r0-0"]}

    found = racks(2, 3)
    queue = Queue(found)
    party(queue, NARROW)
    assert seats(queue) == {"free": ["r1-0"], "picky": ["r0-0", "r0-1"]}
    assert len(queue) == 0
    held = {one.task: (one.node, one.gpus) for one in found.holdings()}
    assert held == {
        "free-t0": ("r1-0", tuple(range(8))),
        "picky-t0": ("r0-0", tuple(range(8))),
        "picky-t1": ("r0-1", tuple(range(8))),
    }


def test_groups_of_different_workflows_do_not_move_for_each_other() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": NARROW["free"]}, name="v")
    party(queue, {"picky": NARROW["picky"]}, number=2)
    assert seats(queue) == {"free": ["r0-0"]}


def test_a_group_that_runs_does_not_move() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": NARROW["free"]})
    assert seats(queue) == {"free": ["r0-0"]}
    party(queue, {"picky": NARROW["picky"]})
    assert seats(queue) == {}


def test_groups_that_do_not_fit_together_are_seated_as_far_as_they_do() -> None:
    queue = Queue(racks(2, 3))
    party(queue, {"free": gang(4), "picky": NARROW["picky"], "last": gang(1)})
    assert list(seats(queue)) == ["free", "last"]
    assert [each.key[1] for each in queue.entries()] == ["picky"]


@pytest.mark.parametrize(("limit", "seated"), [(24, ["free", "picky"]), (23, ["free"])])
def test_groups_together_keep_to_the_limit_of_their_pool(limit: int, seated: list[str]) -> None:
    queue = Queue(racks(2, 3))
    party(queue, NARROW, replace(POOL, gpus=GpuQuota(limit=limit)))
    assert list(seats(queue)) == seated


@pytest.mark.parametrize(("most", "seated"), [(3, ["free", "picky"]), (2, ["free"])])
def test_groups_together_keep_to_the_bound_of_processes(most: int, seated: list[str]) -> None:
    found = racks(2, 3)
    queue = Queue(found, 10.0, lambda: (found.tasks, most))
    party(queue, NARROW)
    assert list(seats(queue)) == seated


def test_groups_together_keep_off_nodes_that_are_kept_for_somebody() -> None:
    """A large gang has waited too long, and r1 is kept for it: there is nowhere else for the group to go."""
    found = racks(2, 3)
    queue = Queue(found, patience=1.0)
    found.hold(("v", "g", 1), "main", {"t": "r1-0"}, {"t": Shape(requests=((GPU, 8),))})
    queue.put(entry("large", gang(3, rack=True)))
    queue.put(entry("small", gang(1, gpu=0), since=1.0))
    assert placed(queue, 0.0) == ["small"]
    party(queue, NARROW, number=10**9)
    assert seats(queue, 5.0) == {"free": ["r0-0"]}


def test_nobody_comes_to_a_kept_node_in_exchange_for_a_group_that_would_leave_it() -> None:
    found = racks(2, 3)
    queue = Queue(found, patience=1.0)
    found.hold(("v", "g", 1), "main", {"t": "r0-1"}, {"t": Shape(requests=((GPU, 8),))})
    large = without_nodes(gang(2), ["r1-0", "r1-1", "r1-2"])
    queue.put(entry("large", large, since=0.0))
    queue.put(entry("small", gang(1, gpu=0), since=1.0))
    assert placed(queue, 0.0) == ["small"]
    only = without_nodes(gang(1), ["r0-1", "r1-0", "r1-1", "r1-2"])
    party(queue, {"only": only})
    queue.put(replace(queue._waiting["w", "only", 1].entry, since=9.0))
    queue.put(QueueEntry(("w", "free", 1), POOL, gang(1), "HIGH", 0.0, 1))
    # `free` goes before the large one, for which r0 is then kept; `only` comes after it.
    assert seats(queue, 5.0) == {"free": ["r0-0"]}


def test_tasks_that_join_running_ones_stay_near_them_when_others_are_placed_with_them() -> None:
    found = racks(2, 3)
    shape = Shape(requests=((GPU, 8),))
    found.hold(("w", "joins", 1), "main", {"a": "r1-0"}, {"a": shape})
    tasks = [RequestedTask(name, shape, (TaskRequirement("rack", "default", required=True),)) for name in ("a", "b")]
    queue = Queue(found)
    queue.put(QueueEntry(("w", "joins", 2), POOL, build("joins", tasks, LEVELS), "NORMAL", 0.0, 1, {"a": "r1-0"}))
    party(queue, NARROW)
    assert seats(queue) == {"joins": ["r1-1"], "free": ["r1-2"], "picky": ["r0-0", "r0-1"]}


def test_many_groups_of_one_kind_are_asked_about_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(one: Gang, capacity: Capacity, *, anchors: Mapping[str, str], budget: int) -> Found | NoPlacement:
        asked.append(len(one.all_tasks()))
        return place(one, capacity, anchors=anchors, budget=budget)

    monkeypatch.setattr("coterie.placement.joint.place", counting)
    queue = Queue(racks(2, 3))
    party(queue, {f"g{n}": gang(2, rack=True) for n in range(50)})
    assert list(seats(queue)) == ["g0", "g1"]
    assert asked == [6]
    assert seats(queue) == {}
    assert asked == [6]
