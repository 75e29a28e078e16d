"""A GPU node has one NVLink channel, unless the source of the cluster states otherwise."""

from __future__ import annotations

from coterie.topology.channels import CHANNEL, with_channels
from coterie.topology.cluster import CPU, GPU, Cluster, Node, Pod


def offered(cluster: Cluster) -> dict[str, int]:
    row = cluster.resource(CHANNEL)
    return {name: int(cluster.allocatable[row, index]) for index, name in enumerate(cluster.names)}


def test_nodes_with_gpus_have_one_channel() -> None:
    cluster = with_channels(Cluster.of([Node("a", {}, {GPU: 8}), Node("b", {}, {CPU: 1000})]))

    assert offered(cluster) == {"a": 1, "b": 0}
    assert cluster.held(range(0)).shape == cluster.allocatable.shape


def test_a_channel_that_is_held_is_there() -> None:
    nodes = [Node("a", {}, {GPU: 8}), Node("b", {}, {CPU: 1000})]
    cluster = with_channels(Cluster.of(nodes, [Pod("p", "b", {CHANNEL: 1}), Pod("q", "a", {GPU: 1})]))

    assert offered(cluster) == {"a": 1, "b": 1}
    assert cluster.held(range(2))[cluster.resource(CHANNEL)].tolist() == [0, 1]


def test_nodes_that_say_themselves_which_have_one_are_believed() -> None:
    cluster = Cluster.of([Node("a", {}, {GPU: 8, CHANNEL: 1}), Node("b", {}, {GPU: 8})])

    assert with_channels(cluster) is cluster
    assert offered(cluster) == {"a": 1, "b": 0}


def test_adding_channels_twice_changes_nothing() -> None:
    once = with_channels(Cluster.of([Node("a", {}, {GPU: 8})], [Pod("p", "a", {GPU: 2})]))

    assert with_channels(once) is once
    assert once.held([0])[once.resource(GPU)].tolist() == [2]
