"""The pods that belong to a workload: by Coterie's labels or Grove's, by all of its names, in its namespace."""

from __future__ import annotations

import pytest

from coterie.backends.shared.names import label_value
from coterie.backends.shared.ownership import RunningTasks
from coterie.gang.tree import Gang, Shape, Task
from coterie.topology.cluster import Cluster, Member, Node, Pod

LONG = "g" * 80
GANG = Gang("g", tasks=(Task("t-0", Shape()), Task("t-1", Shape(), 1)))


def seen(*pods: tuple[str, Member, str], names: tuple[str, ...] = ("w",), namespace: str = "") -> RunningTasks:
    """Return what is seen of a workload where these pods run, each by its name, labels and node."""
    nodes = [Node(name, {}, {}) for name in ("n1", "n2", "n3")]
    return RunningTasks.of(
        Cluster.of(nodes, [Pod(name, node, {}, member=member) for name, member, node in pods]), names, namespace
    )


def test_a_pod_of_another_namespace_is_another_workloads() -> None:
    here, there = ("a/p", Member("w", "g", "t-0"), "n1"), ("b/p", Member("w", "g", "t-0"), "n2")

    assert seen(here, there, namespace="a").running(GANG) == {"t-0": "n1"}
    assert seen(here, there, namespace="b").running(GANG) == {"t-0": "n2"}
    assert seen(here, namespace="b").running(GANG) == {}


def test_pods_of_a_cluster_file_have_no_namespace_and_are_in_every_one() -> None:
    assert seen(("p", Member("w", "g", "t-1"), "n1"), namespace="a").running(GANG) == {"t-1": "n1"}


@pytest.mark.parametrize(
    ("spaces", "expected", "unsure"),
    [
        (("a",), {"t-0": "n1"}, ()),
        (("a", "default"), {"t-0": "n2"}, ()),
        (("a", "b"), {}, ("a", "b")),
    ],
    ids=["the only one", "of several the default one", "of several nobody knows which"],
)
def test_where_nobody_names_a_namespace(
    spaces: tuple[str, ...], expected: dict[str, str], unsure: tuple[str, ...]
) -> None:
    pods = [(f"{space}/p", Member("w", "g", "t-0"), f"n{number}") for number, space in enumerate(spaces, 1)]

    found = seen(*pods)

    assert (found.running(GANG), found.unsure) == (expected, unsure)


def test_a_workload_is_known_by_each_of_its_names_and_by_what_labels_hold_of_long_ones() -> None:
    gang = Gang(LONG, tasks=(Task(LONG, Shape()), Task("t-1", Shape(), 1)))
    short, long = (
        Member("short", label_value(LONG), "t-1"),
        Member(label_value(LONG), label_value(LONG), label_value(LONG)),
    )

    found = seen(("p", short, "n1"), ("q", long, "n2"), names=(LONG, "short"))

    assert found.running(gang) == {LONG: "n2", "t-1": "n1"}
