"""Coterie's own cluster file: its meaning, and the faults it reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.document.located import load
from coterie.errors import Fault, Place, SpecErrors
from coterie.sources import Snapshot
from coterie.sources.cluster_file import read_cluster_file
from coterie.topology.cluster import Cluster, Member, Taint
from coterie.topology.levels import Topology

LEVELS = """
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
"""


def read(text: str) -> Snapshot:
    document = load(text, "cluster.yaml")
    return read_cluster_file(document.data, document.place)


def faults(text: str) -> tuple[Fault, ...]:
    with pytest.raises(SpecErrors) as caught:
        read(text)
    return caught.value.faults


def offered(cluster: Cluster, node: str) -> dict[str, int]:
    column = cluster.allocatable[:, cluster.position[node]].tolist()
    return {name: value for name, value in zip(cluster.resources, column, strict=True) if value}


def racks(cluster: Cluster) -> dict[str, tuple[str | None, str | None]]:
    zone, rack = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
    return {name: (cluster.label(index, zone), cluster.label(index, rack)) for index, name in enumerate(cluster.names)}


def test_nodes_one_by_one_say_all_that_a_node_can_be() -> None:
    snapshot = read(
        LEVELS
        + """
nodes:
- name: n1
  labels: {disk: nvme, number: 3, nothing: ""}
  domains: {zone: a, rack: 7}
  gpu: 8
  cpu: 1.5
  memory: 512Gi
  storage: 1T
  pods: 110
  allocatable: {example.com/nic: 2}
  taints: [{key: k, value: v, effect: NoExecute}, {key: plain}]
  cordoned: true
  ready: false
- name: n2
"""
    )
    cluster = snapshot.cluster
    assert snapshot.topology == Topology.of(
        ("zone", "topology.kubernetes.io/zone"), ("rack", "topology.kubernetes.io/rack")
    )
    assert snapshot.notices == ()
    assert racks(cluster) == {"n1": ("a", "7"), "n2": (None, None)}
    assert [cluster.label(0, key) for key in ("disk", "number", "nothing")] == ["nvme", "3", ""]
    assert offered(cluster, "n1") == {
        "cpu": 1500,
        "ephemeral-storage": 10**12,
        "example.com/nic": 2,
        "memory": 512 << 30,
        "nvidia.com/gpu": 8,
        "pods": 110,
    }
    assert cluster.taint_sets[cluster.taint_set[0]] == (Taint("k", "v", "NoExecute"), Taint("plain"))
    assert (cluster.cordoned.tolist(), cluster.ready.tolist()) == ([True, False], [False, True])


def test_a_node_is_its_own_host_unless_it_says_otherwise() -> None:
    cluster = read("nodes: [{name: n1}, {name: n2, labels: {kubernetes.io/hostname: other}}]").cluster
    assert [cluster.label(node, "kubernetes.io/hostname") for node in (0, 1)] == ["n1", "other"]


def test_a_fleet_multiplies_out_its_domains_with_so_many_nodes_in_each() -> None:
    cluster = read(LEVELS + "fleet: [{domains: {rack: 2, zone: [a, b]}, nodes: 2, gpu: 4}]").cluster
    assert racks(cluster) == {
        f"{zone}-{rack}-n{number}": (zone, rack) for zone in "ab" for rack in ("rack1", "rack2") for number in (1, 2)
    }
    assert {next(iter(offered(cluster, name).items())) for name in cluster.names} == {("nvidia.com/gpu", 4)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("node-{n}", ["node-1", "node-2", "node-3", "node-4"]),
        ("g{n:02}", ["g01", "g02", "g03", "g04"]),
        ("{zone}.{rack}-{i}", ["a.x-1", "a.x-2", "a.y-1", "a.y-2"]),
    ],
)
def test_fleet_names_follow_their_pattern(name: str, expected: list[str]) -> None:
    cluster = read(LEVELS + f'fleet: [{{domains: {{zone: a, rack: [x, y]}}, nodes: 2, name: "{name}"}}]').cluster
    assert list(cluster.names) == expected


def test_a_fleet_needs_no_domains_and_several_blocks_stand_side_by_side() -> None:
    cluster = read("fleet: [{nodes: 2, gpu: 8}, {name: cpu-only, cpu: 64}]").cluster
    assert cluster.names == ("cpu-only", "n1", "n2")


def test_pods_hold_what_they_say_where_they_say() -> None:
    cluster = read(
        """
fleet: [{nodes: 3, gpu: 8, cpu: 10}]
pods:
- {name: team/p1, node: n1, gpu: 4, owner: wf-12}
- {owner: wf-13, gpu: 8, nodes: [n2, n3]}
- {owner: wf-13, cpu: 500m, node: n1, terminating: true}
- {name: agent, nodes: [n1, n2], requests: {cpu: 1, example.com/nic: 1}, daemon: true}
- {node: n3}
- node: n3
  labels: {coterie.dev/workflow: w, coterie.dev/group: g, coterie.dev/task: t}
"""
    ).cluster
    seen = {pod.name: (pod.node, dict(pod.requests), pod.owner) for pod in cluster.pods}
    assert seen == {
        "team/p1": ("n1", {"nvidia.com/gpu": 4}, "wf-12"),
        "default/wf-13-1": ("n2", {"nvidia.com/gpu": 8}, "wf-13"),
        "default/wf-13-2": ("n3", {"nvidia.com/gpu": 8}, "wf-13"),
        "default/wf-13-3": ("n1", {"cpu": 500}, "wf-13"),
        "default/agent-1": ("n1", {"cpu": 1000, "example.com/nic": 1}, "default/agent-1"),
        "default/agent-2": ("n2", {"cpu": 1000, "example.com/nic": 1}, "default/agent-2"),
        "default/pod-1": ("n3", {}, "default/pod-1"),
        "default/w-1": ("n3", {}, "w"),
    }
    assert {pod.name for pod in cluster.pods if pod.daemon} == {"default/agent-1", "default/agent-2"}
    assert {pod.name for pod in cluster.pods if pod.terminating} == {"default/wf-13-3"}
    assert [pod.member for pod in cluster.pods if pod.member] == [Member("w", "g", "t")]


def test_memory_of_a_few_bytes_is_noticed() -> None:
    notice = read("nodes: [{name: n1, memory: 512}]").notices[0]
    assert (notice.code, notice.message) == ("TinySize", 'memory 512 is 512 bytes; for gibibytes write "512Gi"')
    assert notice.place is not None
    assert (notice.place.line, notice.place.column) == (1, 28)


WRONG: list[tuple[str, str, list[tuple[str, int, str]]]] = [
    # what, text, (message, line, part of the hint) of each fault
    ("a list", "- a", [("the cluster file must be a mapping, not a list", 1, "topology_keys, nodes, fleet, pods")]),
    ("a text", "hello", [("the cluster file must be a mapping, not text", 1, "nodes")]),
    ("of kubernetes", "kind: List\nitems: []", [("this is a Kubernetes object, not a cluster file", 1, "-o json")]),
    ("no nodes", "pods: []", [("there are no nodes in it", 1, '"fleet"')]),
    ("empty mapping", "{}", [("there are no nodes in it", 1, '"fleet"')]),
    (
        "unknown fields",
        "node:\n- name: n1\nnodes:\n- name: n1\n  gpus: 8\n",
        [
            ('unknown field "node" in the cluster file', 2, 'Did you mean "nodes"?'),
            ('unknown field "gpus" in nodes[0]', 5, 'Did you mean "gpu"?'),
        ],
    ),
    (
        "an unknown field that resembles none",
        "nodes: [{name: n1, flavour: x}]",
        [('unknown field "flavour" in nodes[0]', 1, "Known fields: allocatable,")],
    ),
    ("nodes that are no list", "nodes: {n1: 8}", [("nodes must be a list, not a mapping", 1, "dash")]),
    ("a node that is a text", "nodes: [n1]", [("nodes[0] must be a mapping, not text", 1, "")]),
    ("a node without name", "nodes: [{gpu: 1}]", [("nodes[0] has no name", 1, "{name: n1, gpu: 8}")]),
    ("a node of nothing", "nodes: [null]", [("nodes[0] has no name", 1, "{name: n1, gpu: 8}")]),
    ("a bad node name", "nodes: [{name: n/1}]", [('"n/1" cannot be the name of a node', 1, "253 letters")]),
    (
        "a node twice",
        "nodes:\n- name: n1\nfleet:\n- nodes: 2\n",
        [('fleet[0] makes a node "n1", but nodes[0] made one already', 4, "")],
    ),
    (
        "a bad quantity",
        "nodes: [{name: n1, cpu: many, memory: [1], gpu: 1.5, pods: -1}]",
        [
            ('"many" is not a quantity of cpu: write a number with a suffix', 1, ""),
            ("nodes[0].memory must be a quantity, not a list", 1, "500m"),
            ("1.5 of nvidia.com/gpu is not a whole number", 1, ""),
            ("-1 is negative: an amount of pods is zero or more", 1, ""),
        ],
    ),
    (
        "a resource twice",
        "nodes: [{name: n1, gpu: 8, allocatable: {nvidia.com/gpu: 4}}]",
        [('"nvidia.com/gpu" is given twice', 1, "Keep either")],
    ),
    (
        "labels",
        "nodes: [{name: n1, labels: {a b: x, rack: 'r 1', zone: true, block: 1.5, row: null}}]",
        [
            ('"a b" is not a label: the name part may hold', 1, ""),
            ('"r 1" cannot be the value of a label', 1, "At most 63"),
            ("nodes[0].labels.zone must be text, not true or false", 1, "Put it in quotes."),
            ("nodes[0].labels.block must be text, not a number", 1, "Put it in quotes."),
            ("nodes[0].labels.row must be text, not nothing", 1, ""),
        ],
    ),
    (
        "domains without levels",
        "nodes: [{name: n1, domains: {zone: a}}]",
        [('"zone" is not a level of topology_keys', 1, 'under "topology_keys"')],
    ),
    (
        "an unknown level",
        LEVELS + "nodes:\n- {name: n1, domains: {rak: r1}}\nfleet:\n- {domains: {pod: 3}}",
        [
            ('"rak" is not a level of topology_keys', 6, 'Did you mean "rack"?'),
            ('"pod" is not a level of topology_keys', 8, "Levels: zone, rack."),
        ],
    ),
    (
        "labels against domains",
        LEVELS + "nodes: [{name: n1, domains: {zone: a}, labels: {topology.kubernetes.io/zone: b}}]",
        [('label "topology.kubernetes.io/zone" contradicts the "domains" of nodes[0]', 5, "")],
    ),
    (
        "levels",
        "topology_keys:\n- {key: a, label: x}\n- {key: a, label: x}\nnodes: [{name: n1}]",
        [
            ('level "a" is defined twice', 3, ""),
            ('label "x" is used by two levels, "a" and "a"', 3, "label of its own"),
        ],
    ),
    (
        "levels of the wrong form",
        "topology_keys: [zone, {key: rack}, {key: x, labl: y, label: z}]\nnodes: [{name: n1}]",
        [
            ("topology_keys[0] must be a mapping, not text", 1, ""),
            ("topology_keys[1] lacks label", 1, "{key: rack, label: NODE-LABEL}"),
            ('unknown field "labl" in topology_keys[2]', 1, 'Did you mean "label"?'),
        ],
    ),
    (
        "no levels",
        "topology_keys: []\nnodes: [{name: n1}]",
        [("a topology needs at least one level", 1, "coarsest")],
    ),
    (
        "taints",
        "nodes: [{name: n1, taints: [{value: v}, {key: k, effect: NoSchedul}, {key: k, effect: Boom}]}]",
        [
            ("nodes[0].taints[0].key must be text, not nothing", 1, ""),
            ('"NoSchedul" is not the effect of a taint', 1, 'Did you mean "NoSchedule"?'),
            ('"Boom" is not the effect of a taint', 1, "One of NoSchedule, PreferNoSchedule, NoExecute."),
        ],
    ),
    (
        "flags",
        "nodes: [{name: n1, cordoned: 1, ready: 'no'}]",
        [
            ("nodes[0].cordoned must be true or false, not a number", 1, ""),
            ("nodes[0].ready must be true or false, not text", 1, ""),
        ],
    ),
    (
        "fleet counts",
        LEVELS
        + "fleet:\n- nodes: 0\n- nodes: many\n- domains: {zone: 0}\n- domains: {zone: []}\n- domains: {zone: [a, a]}",
        [
            ("fleet[0].nodes must be at least 1", 6, ""),
            ("fleet[1].nodes must be a whole number, not text", 7, ""),
            ("fleet[2].domains.zone must be at least 1", 8, ""),
            ("fleet[3].domains.zone is an empty list", 9, "a list of values or a count"),
            ("fleet[4].domains.zone has the same value twice", 10, ""),
        ],
    ),
    (
        "fleet names",
        "fleet:\n- {nodes: 2, name: same}\n- {nodes: 2, name: 'x{m}'}\n- {nodes: 2, name: '-{n}'}",
        [
            ('"same" gives two nodes the same name', 2, "{n}"),
            ('"{m}" has no meaning in a node name', 3, "Known: {n}, {i}."),
            ('"x{m}" gives two nodes the same name', 3, "{n}"),
            ('"-1" cannot be the name of a node', 4, "253"),
        ],
    ),
    (
        "a fleet too large",
        LEVELS + "fleet: [{domains: {zone: 1000, rack: 1000}, nodes: 1000}]",
        [("fleet[0] makes 1,000,000,000 nodes: at most 200,000 are allowed", 5, "")],
    ),
    (
        "a fleet far too large",
        "fleet: [{nodes: 99999999999999999999}]",
        [("fleet[0].nodes is far too large", 1, "")],
    ),
    (
        "a fleet too large in sum",
        "fleet: [{nodes: 150000, name: 'a{n}'}, {nodes: 150000}]",
        [("up to here the fleet has 300,000 nodes: at most 200,000 are allowed", 1, "")],
    ),
    (
        "pods",
        """nodes: [{name: node1}]
pods:
- {gpu: 1}
- {node: node1, nodes: [node1]}
- {node: node2}
- {nodes: []}
- {nodes: node1}
- {node: node1, gpus: 2, daemon: x}
- {name: p, node: node1}
- {name: p, node: node1}
- 7
""",
        [
            ("pods[0] does not say where it is", 3, "nodes: [NAME, NAME]"),
            ('pods[1] has both "node" and "nodes"', 4, "node: NAME"),
            ('there is no node "node2"', 5, 'Did you mean "node1"?'),
            ("pods[3].nodes is empty", 6, "at least one node"),
            ("pods[4].nodes must be a list, not text", 7, "dash"),
            ('unknown field "gpus" in pods[5]', 8, 'Did you mean "gpu"?'),
            ("pods[5].daemon must be true or false, not text", 8, ""),
            ('there is already a pod "p"', 10, ""),
            ("pods[8] must be a mapping, not a number", 11, ""),
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_mistakes_are_all_told_at_once_with_their_lines(text: str, expected: list[tuple[str, int, str]]) -> None:
    found = faults(text)
    assert len(found) == len(expected), [fault.message for fault in found]
    for fault, (message, line, hint) in zip(found, expected, strict=True):
        assert fault.message.startswith(message)
        assert hint in fault.hint
        assert fault.place is not None
        assert (fault.place.file, fault.place.line) == ("cluster.yaml", line)


_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["zone", "n1", "{n}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "topology_keys",
                    "nodes",
                    "fleet",
                    "pods",
                    "key",
                    "label",
                    "name",
                    "labels",
                    "domains",
                    "zone",
                    "gpu",
                    "allocatable",
                    "taints",
                    "effect",
                    "cordoned",
                    "ready",
                    "node",
                    "owner",
                    "requests",
                    "memory",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(
    _DATA
    | st.fixed_dictionaries(
        {"topology_keys": st.just([{"key": "zone", "label": "z"}]), "nodes": _DATA, "fleet": _DATA, "pods": _DATA}
    )
)
def test_any_data_is_read_or_refused_with_faults(data: Any) -> None:
    try:
        read_cluster_file(data, lambda _: Place("f"))
    except SpecErrors as error:
        assert error.faults  # noqa: PT017 - a refusal is one of two good outcomes
