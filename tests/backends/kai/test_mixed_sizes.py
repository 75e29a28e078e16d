"""Tasks of different sizes are written so that KAI compares sums and takes the large ones first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.backends.kai.mixed_sizes import PRIORITY, mix, priorities
from coterie.backends.kai.pod_group import pod_group_of
from coterie.gang.tree import Shape, Task
from coterie.topology.cluster import CPU, GPU, STORAGE, Cluster, Node
from tests.backends.kai.builders import GPUS, RACKS, codes, faults_of, of_kind, rendered
from tests.frontends.workflow.samples import grouped, task
from tests.planning.builders import drawn, gangs

STORED = Cluster.of([Node("n1", {}, {GPU: 8, CPU: 64_000, STORAGE: 1 << 30}), Node("n2", {}, {CPU: 64_000})])
BARE = Cluster.of([Node("n1", {}, {GPU: 8, CPU: 64_000})])
LEVELS = drawn("cluster zone > rack\n  zone a: rack r1 [8]")
MIXED = grouped(("g", task("small", "lead: true", "resource: r4"), task("large", "resource: r8")), extra=RACKS)
TOGETHER = MIXED.replace("group: r4", "group: x").replace("group: r8", "group: x")


def storing(text: str, cluster: Cluster | None = STORED) -> tuple[str, ...]:
    (gang,) = gangs(text, LEVELS)
    return mix(gang, LEVELS.topology, cluster).storing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g: 2 x 4gpu + 1 x 8gpu required=rack", ["g-2"]),
        ("g: 2 x 4gpu + 1 x 8gpu preferred=rack", ["g-2"]),
        ("g: 2 x 4gpu required=rack", []),
        ("g: 2 x 4gpu + 1 x 8gpu", []),
        ("g: 2 x 4gpu + 1 x 1cpu required=rack", []),
        ("g: required=zone\n  a: 1 x 4gpu + 1 x 8gpu required=rack\n  b: 2 x 2gpu required=rack", ["a-1"]),
        (
            "g: required=zone\n  a: 1 x 4gpu + 1 x 8gpu required=rack\n  b: 1 x 2gpu + 1 x 4gpu required=rack",
            ["a-1", "b-1"],
        ),
        ("g: required=zone\n  a: 2 x 4gpu required=rack\n  b: 2 x 2gpu required=rack", ["a-0"]),
    ],
)
def test_the_largest_task_of_a_mixed_part_gets_a_little_storage(text: str, expected: list[str]) -> None:
    assert list(storing(text)) == expected


def test_nothing_is_added_where_nodes_do_not_report_storage_or_are_not_known() -> None:
    text = "g: 2 x 4gpu + 1 x 8gpu required=rack"

    assert storing(text, BARE) == ()
    assert storing(text, None) == ()
    assert storing(text, Cluster.of([*_nodes(STORED), Node("n3", {}, {GPU: 8})])) == ()


def test_storage_that_a_task_asks_for_itself_stays_as_it_is() -> None:
    (gang,) = gangs("g: 2 x 4gpu + 1 x 8gpu required=rack", LEVELS)
    own = replace(gang, groups=tuple(replace(one, tasks=tuple(map(_stored, one.tasks))) for one in gang.groups))

    assert mix(own, LEVELS.topology, STORED).gang is own


def test_every_mixed_part_is_told_apart_by_storage() -> None:
    (gang,) = gangs("g: required=zone\n  a: 1 x 4gpu + 1 x 8gpu required=rack\n  b: 3 x 2gpu required=rack", LEVELS)
    for part, _ in pod_group_of(mix(gang, LEVELS.topology, STORED).gang, LEVELS.topology).walk():
        kinds = {bool(one.shape.amount(STORAGE)) for one in part.all_tasks()}
        sizes = {one.shape.amount(GPU) for one in part.all_tasks()}
        assert len(kinds) == min(2, len(sizes))


def test_needed_tasks_come_first_and_then_the_large_ones() -> None:
    shapes = {"small": Shape(((GPU, 1),)), "large": Shape(((CPU, 1), (GPU, 4))), "idle": Shape(((CPU, 9),))}
    tasks = [Task(name, shape, needed=needed) for name, shape in shapes.items() for needed in (True, False)]
    tasks = [replace(one, name=f"{one.name}-{'needed' if one.needed else 'wanted'}") for one in tasks]
    found = priorities(tasks)

    assert sorted(found, key=lambda name: -found[name]) == [
        "large-needed",
        "small-needed",
        "idle-needed",
        "large-wanted",
        "small-wanted",
        "idle-wanted",
    ]


def test_tasks_that_are_all_alike_have_no_priority() -> None:
    assert priorities([Task("a", Shape(((GPU, 1),))), Task("b", Shape(((GPU, 1),)))]) == {}
    pods = of_kind(rendered(grouped(("g", task("a", "lead: true"), task("b")), extra=GPUS)), "Pod")
    assert not any(PRIORITY in pod["metadata"]["labels"] for pod in pods)


def test_pods_carry_their_priority_and_the_one_request() -> None:
    found = rendered(TOGETHER, cluster=STORED)
    small, large = of_kind(found, "Pod")

    assert [pod["metadata"]["labels"][PRIORITY] for pod in (small, large)] == ["0", "1"]
    asked = [pod["spec"]["containers"][0]["resources"]["requests"].get(STORAGE) for pod in (small, large)]
    assert asked == [None, "1Ki"]
    assert "StorageRequested" in codes(found)
    assert "MixedSizes" not in codes(found)


def test_without_a_cluster_a_warning_is_all_there_is() -> None:
    assert "MixedSizes" in codes(rendered(TOGETHER))


def test_a_required_level_at_which_kai_takes_two_domains_for_one_is_refused() -> None:
    labels = [{"topology.kubernetes.io/zone": "a", "spine": "s"}, {"topology.kubernetes.io/zone": "a.s", "spine": "x"}]
    racks = ["x.r", "r"]
    nodes = [
        Node(f"n{index}", {**one, "topology.kubernetes.io/rack": rack}, {GPU: 8})
        for index, (one, rack) in enumerate(zip(labels, racks, strict=True))
    ]
    found = faults_of(TOGETHER, cluster=Cluster.of(nodes))

    assert len(found) == 1
    assert found[0].startswith(
        'what group "g" requires might not hold: KAI treats the rack a/s/x.r and the rack a.s/x/r'
    )
    rendered(TOGETHER.replace("group: x", "group: x, requirementType: preferred"), cluster=Cluster.of(nodes))


def _stored(one: Task) -> Task:
    requests = tuple(sorted((*one.shape.requests, (STORAGE, 1 << 20))))
    return replace(one, shape=replace(one.shape, requests=requests))


def _nodes(cluster: Cluster) -> list[Node]:
    amounts = zip(cluster.names, cluster.allocatable.T.tolist(), strict=True)
    return [Node(name, {}, dict(zip(cluster.resources, row, strict=True))) for name, row in amounts]
