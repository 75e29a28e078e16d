"""A cluster is the same in whatever order its nodes and pods are given."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from coterie.topology.cluster import GPU, PODS, UNLIMITED_PODS, Cluster, Node, Pod, Taint
from coterie.topology.display_names import natural


def test_nodes_stand_in_natural_order() -> None:
    assert Cluster.of([Node("n10"), Node("n2"), Node("a")]).names == ("a", "n2", "n10")
    assert natural("n2") < natural("n10")


def test_labels_are_kept_by_column() -> None:
    cluster = Cluster.of([Node("n1", {"rack": "a"}), Node("n2"), Node("n3", {"rack": "a", "x": ""})])
    assert cluster.column("rack").codes.tolist() == [0, -1, 0]
    assert cluster.column("none").codes.tolist() == [-1, -1, -1]
    assert [cluster.label(node, "rack") for node in range(3)] == ["a", None, "a"]
    assert [cluster.label(node, "x") for node in range(3)] == [None, None, ""]


def test_a_node_that_does_not_say_takes_any_number_of_pods() -> None:
    cluster = Cluster.of([Node("n1"), Node("n2", allocatable={PODS: 0})])
    assert cluster.allocatable[cluster.resource(PODS)].tolist() == [UNLIMITED_PODS, 0]


def test_pods_hold_what_they_ask_for_and_one_place() -> None:
    nodes = [Node("n1", allocatable={GPU: 8}), Node("n2", allocatable={GPU: 8})]
    pods = [Pod("a", "n1", {GPU: 2}), Pod("b", "n1", {GPU: 3, "x": 1}), Pod("c", "gone", {GPU: 1})]
    cluster = Cluster.of(nodes, pods)
    held = cluster.held(range(len(cluster.pods)))
    assert [pod.name for pod in cluster.pods] == ["a", "b"]
    assert held[cluster.resource(GPU)].tolist() == [5, 0]
    assert held[cluster.resource(PODS)].tolist() == [2, 0]
    assert cluster.held([]).sum() == 0
    assert (cluster.resource("x"), cluster.resource("y")) != (-1, 0)
    assert cluster.resource("y") == -1


def test_equal_taints_are_kept_once() -> None:
    taints = (Taint("k"),)
    cluster = Cluster.of([Node("n1", taints=taints), Node("n2"), Node("n3", taints=taints)])
    assert cluster.taint_sets == (taints, ())
    assert cluster.taint_set.tolist() == [0, 1, 0]


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=8),
    st.lists(st.integers(0, 99), unique=True, max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_order_of_nodes_and_pods_does_not_matter(on: list[int], who: list[int], shuffler: random.Random) -> None:
    nodes = [Node(f"n{i}", {"rack": f"r{i % 3}", f"own{i % 2}": "x"}, {GPU: i}, (Taint("t"),) * (i % 2)) for i in on]
    pods = [Pod(f"p{i}", f"n{i}", {GPU: 1, "x": i}) for i in who]
    one = Cluster.of(nodes, pods)
    shuffler.shuffle(nodes)
    shuffler.shuffle(pods)
    other = Cluster.of(nodes, pods)
    assert (one.names, one.resources, one.pods, one.taint_sets) == (
        other.names,
        other.resources,
        other.pods,
        other.taint_sets,
    )
    for field in ("allocatable", "taint_set", "pod_node", "pod_requests"):
        assert (getattr(one, field) == getattr(other, field)).all()
    assert list(one.columns) == list(other.columns)
    for key in one.columns:
        assert one.columns[key].values == other.columns[key].values
        assert (one.columns[key].codes == other.columns[key].codes).all()
