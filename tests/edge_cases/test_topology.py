"""Edge cases of labels, levels and pools, T001 to T036, that broke other systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from coterie.config.configuration import read_config
from coterie.errors import SpecErrors
from coterie.sources.kubectl import read_kubectl
from coterie.topology.check import check
from coterie.topology.cluster import Cluster, Node
from coterie.topology.domains import Domains
from coterie.topology.levels import HOSTNAME, Topology, level_faults
from tests.edge_cases.test_service_topology import SHOWN as SERVED

Pairs = tuple[tuple[str, str], ...]
Tuples = tuple[tuple[str, ...], ...]

ZONE = ("zone", "topology.kubernetes.io/zone")
RACK = ("rack", "topology.kubernetes.io/rack")
CLIQUE = ("clique", "nvidia.com/gpu.clique")
HOST = ("host", HOSTNAME)
NULL = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Labels:
    """Nodes with values for the levels ("-" is no label), the finest domains they form, and what the check says."""

    levels: Pairs
    nodes: Mapping[str, str]
    domains: Tuples
    says: tuple[str, ...] = ()
    words: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def cluster(self) -> Cluster:
        nodes = []
        for name, written in self.nodes.items():
            cells = zip(self.levels, written.split(), strict=True)
            labels = {level[1]: value.replace("''", "") for level, value in cells if value != "-"}
            nodes.append(Node(name, {**labels, **self.extra}))
        return Cluster.of(nodes)

    def verify(self) -> None:
        topology, cluster = Topology.of(*self.levels), self.cluster()
        found = check(cluster, topology)
        assert Domains.of(cluster, topology).tiers[-1].values == self.domains
        loud = tuple(finding.code for finding in found if finding.code not in ("HiddenFromScheduler", "SingletonLevel"))
        assert loud == self.says
        assert self.words in " ".join(f"{finding.message} {finding.hint}" for finding in found)


@dataclass(frozen=True)
class Levels:
    """Pairs of level name and label, and a part of each fault they have."""

    pairs: Pairs
    faults: tuple[str, ...] = ()

    def verify(self) -> None:
        found = [fault.message for fault in level_faults(self.pairs)]
        assert len(found) == len(self.faults), found
        assert all(part in message for part, message in zip(self.faults, found, strict=True))


@dataclass(frozen=True)
class Config:
    """A pool's lines in a configuration, and a part of each fault's message and hint."""

    pool: str
    faults: tuple[tuple[str, str], ...] = ()
    name: str = "gb200"
    scheduler: str = "kai"

    def verify(self) -> None:
        pools = f"pools:\n  {self.name}: {{backend: lab, {self.pool}}}\n"
        text = f"backends: {{lab: {{scheduler: {self.scheduler}}}}}\n{pools}"
        if not self.faults:
            assert read_config(text.encode(), "coterie.yaml").pools[self.name].name == self.name
            return
        with pytest.raises(SpecErrors) as caught:
            read_config(text.encode(), "coterie.yaml")
        found = caught.value.faults
        assert len(found) == len(self.faults), [fault.message for fault in found]
        for fault, (message, hint) in zip(found, self.faults, strict=True):
            assert message in fault.message
            assert hint in fault.hint
            assert fault.place is not None
            assert fault.place.line is not None


@dataclass(frozen=True)
class Snapshot:
    """One node as kubectl shows it and a pod's node name: either a fault, or whether the pod is on the node."""

    name: str
    labels: Mapping[str, str]
    pod_on: str = ""
    holds: bool = False
    fault: str = ""

    def verify(self) -> None:
        node = {"kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": self.pod_on}}
        data = json.dumps({"kind": "List", "items": [node, pod]}).encode()
        if self.fault:
            with pytest.raises(SpecErrors, match=self.fault):
                read_kubectl(data, "snapshot.json")
            return
        assert [pod.node for pod in read_kubectl(data, "snapshot.json").cluster.pods] == [self.name] * self.holds


@dataclass(frozen=True)
class Shared:
    """Two topologies over the same nodes: each counts every node once."""

    labels: Labels
    other: Pairs

    def verify(self) -> None:
        cluster = self.labels.cluster()
        for pairs in (self.labels.levels, self.other):
            found = Domains.of(cluster, Topology.of(*pairs))
            for tier in found.tiers:
                assert int((tier.end - tier.start).sum()) == len(cluster)
            assert sorted(found.name(position) for position in range(len(found))) == sorted(cluster.names)


ZR = (ZONE, RACK)
GOOD = {"n1": "a r1", "n2": "a r1", "n3": "b r2", "n4": "b r2"}
ONE_EACH = (("a", "r1"), ("b", "r2"))
HINT_DASH = 'Did you mean "nvidia.com/gpu.clique"?'
MINIMAL = "topology_keys: [{key: rack, label: rack}]"

Case = Labels | Levels | Config | Snapshot | Shared

SHOWN: tuple[tuple[str, str, Case], ...] = (
    ("T001", "missing on some", Labels(ZR, GOOD | {"n5": "b -"}, ONE_EACH, ("LabelMissing",), "1 of 5 nodes (n5)")),
    (
        "T002",
        "missing on all",
        Labels(
            (("clique", "nvidia.com/gpu-clique"),),
            {"n1": "-", "n2": "-"},
            (),
            ("LabelOnNoNode",),
            HINT_DASH,
            {CLIQUE[1]: "c"},
        ),
    ),
    (
        "T003",
        "finer without coarser",
        Labels(ZR, GOOD | {"n5": "- r2"}, ONE_EACH, ("LabelMissing", "LabelGap"), "(n5)"),
    ),
    ("T004", "empty value", Labels(ZR, GOOD | {"n5": "b ''"}, ONE_EACH, ("LabelEmpty",), "counts as missing")),
    (
        "T005",
        "null fabric",
        Labels(
            (CLIQUE,), {"n1": f"{NULL}.0", "n2": NULL, "n3": "0", "n4": "u.1"}, (("u.1",),), ("LabelNull",), "no fabric"
        ),
    ),
    (
        "T006",
        "same clique, other fabric",
        Labels((CLIQUE,), {"n1": "A.32766", "n2": "B.32766"}, (("A.32766",), ("B.32766",))),
    ),
    (
        "T007",
        "same rack value in two zones",
        Labels(ZR, {"n1": "a r1", "n2": "b r1"}, (("a", "r1"), ("b", "r1")), ("NotNested",)),
    ),
    (
        "T007",
        "wrong order",
        Labels((RACK, ZONE), {"n1": "r1 a", "n2": "r2 a"}, (("r1", "a"), ("r2", "a")), ("OrderReversed",)),
    ),
    (
        "T008",
        "a rack spans two zones",
        Labels(
            ZR,
            GOOD | {"n5": "b r1"},
            (("a", "r1"), ("b", "r1"), ("b", "r2")),
            ("NotNested",),
            'rack "r1" lies in zone "a" (n[1-2]) and zone "b" (n5)',
        ),
    ),
    (
        "T008",
        "a clique spans two racks",
        Labels(
            (RACK, CLIQUE),
            {"n1": "r1 c1", "n2": "r1 c2", "n3": "r2 c2"},
            (("r1", "c1"), ("r1", "c2"), ("r2", "c2")),
            ("NotNested",),
            'clique "c2" lies in rack "r1" (n2) and rack "r2" (n3)',
        ),
    ),
    (
        "T009",
        "finest first",
        Labels(
            (RACK, ZONE),
            {f"n{i}": f"r{i // 2} z{i // 4}" for i in range(8)},
            (("r0", "z0"), ("r1", "z0"), ("r2", "z1"), ("r3", "z1")),
            ("OrderReversed",),
            'List "zone" before "rack".',
        ),
    ),
    ("T010", "a key twice", Levels((ZONE, ("zone", "x")), ('level "zone" is defined twice',))),
    ("T010", "a label twice", Levels((ZONE, ("row", ZONE[1])), ('used by two levels, "zone" and "row"',))),
    ("T010", "in a pool", Config("topology_keys: [{key: a, label: x}, {key: a, label: y}]", (("defined twice", ""),))),
    ("T011", "hostname not last", Levels((HOST, ZONE), ("must be the last level",))),
    ("T011", "hostname last", Levels((ZONE, HOST))),
    (
        "T011",
        "in a pool",
        Config(f"topology_keys: [{{key: h, label: {HOSTNAME}}}, {{key: a, label: y}}]", (("must be the last", "end"),)),
    ),
    ("T012", "no level", Levels((), ("at least one level",))),
    ("T012", "16 levels", Levels(tuple((f"l{i}", f"label{i}") for i in range(16)))),
    ("T012", "17 levels", Levels(tuple((f"l{i}", f"label{i}") for i in range(17)), ("at most 16 levels, not 17",))),
    ("T013", "trailing slash", Levels((("a", "example.com/"),), ("follows the slash",))),
    ("T013", "upper-case prefix", Levels((("a", "Example.com/x"),), ("lower-case DNS name",))),
    ("T013", "64 characters", Levels((("a", "x" * 64),), ("64 characters",))),
    ("T013", "longest prefix", Levels((("a", "p" * 253 + "/" + "x" * 63),))),
    ("T013", "in a pool", Config("topology_keys: [{key: a, label: x/}]", (("follows the slash", "Example"),))),
    ("T014", "63 characters", Snapshot("n1", {"rack": "x" * 63}, "n1", holds=True)),
    ("T014", "64 characters", Snapshot("n1", {"rack": "x" * 64}, fault="has 64 characters: at most 63")),
    ("T015", "dots", Labels(ZR, {"n1": "a.b c", "n2": "a b.c"}, (("a", "b.c"), ("a.b", "c")))),
    ("T015", "dashes", Labels(ZR, {"n1": "a b", "n2": "a-b c"}, (("a", "b"), ("a-b", "c")))),
    (
        "T016",
        "prefixes",
        Labels((RACK,), {"n1": "rack-1", "n2": "rack-10", "n3": "rack-11"}, (("rack-1",), ("rack-10",), ("rack-11",))),
    ),
    (
        "T017",
        "a host called like its rack",
        Labels((RACK, HOST), {"r1": "r1 r1", "n2": "r1 n2"}, (("r1", "n2"), ("r1", "r1"))),
    ),
    (
        "T018",
        "by node name",
        Snapshot("ip-10-0-1-2.x.internal", {HOSTNAME: "ip-10-0-1-2"}, "ip-10-0-1-2.x.internal", holds=True),
    ),
    ("T018", "not by hostname", Snapshot("ip-10-0-1-2.x.internal", {HOSTNAME: "ip-10-0-1-2"}, "ip-10-0-1-2")),
    (
        "T019",
        "case",
        Labels((RACK,), {"n1": "Rack1", "n2": "rack1"}, (("Rack1",), ("rack1",)), ("CaseTwins",), "only in case"),
    ),
    (
        "T020",
        "topologyKeys",
        Config("topologyKeys: [{key: rack, label: rack}]", (("topologyKeys", 'Did you mean "topology_keys"?'),)),
    ),
    (
        "T020",
        "topology_key",
        Config("topology_key: [{key: rack, label: rack}]", (("topology_key", 'Did you mean "topology_keys"?'),)),
    ),
    (
        "T020",
        "under a platform",
        Config("platforms: {p: {topology_keys: []}}", (("topology_keys", "belongs to the pool itself"),)),
    ),
    ("T020", "texts", Config("topology_keys: [rack]", (("must have a key and a label", "{key: rack, label: LABEL}"),))),
    (
        "T021",
        "a scheduler without topology",
        Config(MINIMAL, (("cannot honour topology", "local, kai"),), scheduler="default"),
    ),
    ("T021", "a scheduler with topology", Config(MINIMAL)),
    ("T022", "upper case", Config(MINIMAL, (("not allowed", "63 lower-case"),), name="GB200")),
    ("T022", "underscore", Config(MINIMAL, (("not allowed", "63 lower-case"),), name="gb_200")),
    ("T022", "64 characters", Config(MINIMAL, (("not allowed", "63 lower-case"),), name="p" * 64)),
    ("T022", "63 characters", Config(MINIMAL, name="p" * 63)),
    ("T023", "pools sharing nodes", Shared(Labels((*ZR, CLIQUE), {"n1": "a r1 c", "n2": "b r2 c"}, ()), (CLIQUE,))),
    ("T024", "other order of levels", Shared(Labels(ZR, GOOD, ()), (RACK, ZONE))),
)

# What takes two moments of one cluster is shown with a service (SERVED). These need an API server.
ELSEWHERE: dict[str, str] = {
    "T029": "Drift of an external topology is between two objects; a pool of a local backend has one text.",
    "T030": "A missing external topology is seen only where it should have been, in a live cluster.",
    "T031": "An absent definition of topologies is a state of an API server.",
    "T032": "A webhook that is down at the start, and its retries, need an API server that calls it.",
}


@pytest.mark.parametrize("case", [row[2] for row in SHOWN], ids=[f"{row[0]} {row[1]}" for row in SHOWN])
def test_edge_case(case: Case) -> None:
    case.verify()


def test_every_edge_case_of_topologies_is_shown_or_says_why_not() -> None:
    shown = {row[0] for row in SHOWN}
    assert shown | set(ELSEWHERE) | SERVED == {f"T{number:03}" for number in range(1, 37)}
    assert not shown & (set(ELSEWHERE) | SERVED)
