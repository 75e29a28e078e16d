"""The audit reports the outcome of every constraint, from the objects alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.shared.constraint_annotation import ANNOTATION, write
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.inspection.audit import Audit, AuditedGang, AuditOutcome, GangProgress, audit
from coterie.inspection.audit_report import audit_json
from coterie.planning.inputs import read_snapshot
from coterie.topology.levels import Topology

ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
TOPOLOGY = Topology.of(("zone", ZONE), ("rack", RACK))
KAI_TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": ZONE}, {"nodeLabel": RACK}]},
}
# a/r1: n1, n2   a/r2: n3   b/r1: n4   zone b, no rack: n5   no label at all: n6
NODES = {"n1": "a/r1", "n2": "a/r1", "n3": "a/r2", "n4": "b/r1", "n5": "b", "n6": ""}

Json = dict[str, Any]


def node(name: str, where: str) -> Json:
    labels = dict(zip((ZONE, RACK), where.split("/"), strict=False)) if where else {}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"cpu": "8"}}}


def pod(task: str, on: str, *, gang: str = "pg", labels: Mapping[str, str] | None = None, **more: Any) -> Json:
    own = {"coterie.dev/workflow": "wf", "coterie.dev/group": "g", "coterie.dev/task": task, **(labels or {})}
    meta = {
        "name": more.pop("name", f"pod-{task}"),
        "namespace": "team",
        "labels": own,
        "annotations": {"pod-group-name": gang},
    }
    phase = more.pop("phase", "Running" if on else "Pending")
    return {
        "kind": "Pod",
        "metadata": {**meta, **more},
        "spec": {"nodeName": on or None},
        "status": {"phase": phase},
    }


def pod_group(gang: Gang | None, *, name: str = "pg", spec: Json | None = None, **annotations: str) -> Json:
    written = {ANNOTATION: write(gang, TOPOLOGY)} if gang else {}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {"coterie.dev/workflow": "wf"} if gang else {},
            "annotations": {**written, **annotations},
        },
        "spec": spec or {},
    }


def tasks(names: str, first: int = 0, wanted: str = "") -> tuple[Task, ...]:
    return tuple(
        Task(name, Shape(), first + rank, needed=name not in wanted.split()) for rank, name in enumerate(names.split())
    )


def group(path: str, names: str, *, required: bool = True, below: Sequence[Group] = (), wanted: str = "") -> Group:
    steps: Path = tuple((step.split(":")[0], step.partition(":")[2] or "default") for step in path.split("/"))
    return Group(steps, required, tuple(below), tasks(names, wanted=wanted))


def run(*objects: Json, nodes: Mapping[str, str] = NODES) -> Audit:
    items = [*(node(name, where) for name, where in nodes.items()), *objects]
    return audit(read_snapshot(json.dumps({"kind": "List", "items": items}).encode(), "snapshot.json"))


def only(*objects: Json, nodes: Mapping[str, str] = NODES) -> AuditedGang:
    (found,) = run(*objects, nodes=nodes).gangs
    return found


def placed(where: Mapping[str, str]) -> list[Json]:
    return [pod(task, on) for task, on in where.items()]


@pytest.mark.parametrize(
    ("level", "required", "where", "outcome", "why"),
    [
        ("rack", True, {"t0": "n1", "t1": "n2"}, AuditOutcome.HELD, ""),
        ("rack", True, {"t0": "n1", "t1": "n3"}, AuditOutcome.VIOLATED, "a/r1: t0 on n1; a/r2: t1 on n3"),
        ("rack", False, {"t0": "n1", "t1": "n3"}, AuditOutcome.MISSED, "2 racks instead of 1"),
        # One name in two zones is two racks.
        ("rack", True, {"t0": "n1", "t1": "n4"}, AuditOutcome.VIOLATED, "a/r1: t0 on n1; b/r1: t1 on n4"),
        ("zone", True, {"t0": "n1", "t1": "n3"}, AuditOutcome.HELD, ""),
        ("rack", True, {"t0": "n4", "t1": "n5"}, AuditOutcome.UNOBSERVABLE, f"node n5 has no label {RACK}"),
        ("rack", True, {"t0": "n1", "t1": "n6"}, AuditOutcome.UNOBSERVABLE, f"node n6 has no label {ZONE}"),
        # Whatever its rack is called, a node of another zone is in another one.
        ("rack", True, {"t0": "n1", "t1": "n5"}, AuditOutcome.VIOLATED, "a/r1: t0 on n1; b/(no label): t1 on n5"),
        ("rack", False, {"t0": "n1", "t1": "n5"}, AuditOutcome.MISSED, "2 racks instead of 1"),
        ("rack", True, {"t0": "n1", "t1": "gone"}, AuditOutcome.UNOBSERVABLE, "node gone is not in the cluster"),
        ("rack", True, {"t0": "", "t1": ""}, AuditOutcome.UNOBSERVABLE, "none of its tasks runs"),
        ("rack", True, {}, AuditOutcome.UNOBSERVABLE, "none of its tasks runs"),
        ("rack", False, {"t0": "n6", "t1": "n6"}, AuditOutcome.UNOBSERVABLE, f"node n6 has no label {ZONE}"),
    ],
)
def test_a_constraint_is_judged_by_where_its_tasks_are(
    *, level: str, required: bool, where: Mapping[str, str], outcome: AuditOutcome, why: str
) -> None:
    gang = Gang("g", (group(level, "t0 t1", required=required),))

    (finding,) = only(pod_group(gang), *placed(where)).findings

    assert (finding.outcome, finding.why) == (outcome, why)


def test_a_node_relabelled_under_a_running_task_is_seen() -> None:
    objects = (pod_group(Gang("g", (group("rack", "t0 t1"),))), *placed({"t0": "n1", "t1": "n2"}))

    before, after = only(*objects), only(*objects, nodes={**NODES, "n2": "a/r9"})

    assert before.findings[0].outcome is AuditOutcome.HELD
    assert after.findings[0].outcome is AuditOutcome.VIOLATED
    assert after.findings[0].domains == (("a", "r1"), ("a", "r9"))


def test_every_node_of_the_tree_is_judged_by_itself() -> None:
    one, two = group("zone/rack:x", "t0 t1"), group("zone/rack:y", "t2 t3", required=False)
    gang = Gang("g", (Group((("zone", "default"),), True, (one, two)),))  # noqa: FBT003 - required

    found = only(pod_group(gang), *placed({"t0": "n1", "t1": "n2", "t2": "n3", "t3": "n4"}))

    assert [(finding.path[-1], finding.outcome) for finding in found.findings] == [
        (("zone", "default"), AuditOutcome.VIOLATED),
        (("rack", "x"), AuditOutcome.HELD),
        (("rack", "y"), AuditOutcome.MISSED),
    ]


@pytest.mark.parametrize(
    ("pods", "state", "why"),
    [
        (placed({"t0": "n1", "t1": "n2", "w0": "n1"}), GangProgress.RUNNING, ""),
        (placed({"t0": "n1", "t1": "n2", "w0": ""}), GangProgress.RUNNING, ""),
        # One stands in for the other.
        (placed({"t0": "n1", "t1": "", "w0": "n2"}), GangProgress.RUNNING, ""),
        (placed({"t0": "n1", "t1": "", "w0": ""}), GangProgress.INCOMPLETE, "1 of 2 needed tasks does not run: t1,w0"),
        (placed({"w0": "n1"}), GangProgress.INCOMPLETE, "1 of 2 needed tasks does not run"),
        ([pod("t0", "n1"), pod("t1", "n2", phase="Succeeded")], GangProgress.RUNNING, ""),
        (
            [pod("t0", "n1"), pod("t1", "n2", phase="Failed")],
            GangProgress.INCOMPLETE,
            "1 of 2 needed tasks does not run: t1",
        ),
        ([pod("t0", "n1", phase="Succeeded"), pod("t1", "n2", phase="Failed")], GangProgress.FINISHED, ""),
        (placed({"t0": "", "t1": ""}), GangProgress.WAITING, ""),
        ([], GangProgress.WAITING, ""),
    ],
)
def test_a_gang_lacks_only_what_it_needs(pods: Sequence[Json], state: GangProgress, why: str) -> None:
    gang = Gang("g", (group("rack", "t0 t1 w0", wanted="w0"),))

    found = only(pod_group(gang, spec={"minMember": 2}), *pods)

    assert (found.state, found.why) == (state, why)


def test_a_gang_that_needs_all_names_those_that_do_not_run() -> None:
    found = only(pod_group(Gang("g", tasks=tasks("t0 t1 t2"))), *placed({"t0": "n1", "t1": ""}))

    assert (found.state, found.why) == (GangProgress.INCOMPLETE, "2 of 3 needed tasks do not run: t[1-2]")


def test_of_several_attempts_at_a_task_the_one_that_runs_counts() -> None:
    gang = Gang("g", (group("rack", "t0 t1"),))
    tries = [
        pod("t0", "n3", name="first", phase="Failed", labels={"coterie.dev/attempt": "1"}),
        pod("t0", "n4", name="second", labels={"coterie.dev/attempt": "2"}, deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("t0", "n1", name="third", labels={"coterie.dev/attempt": "3"}),
    ]

    found = only(pod_group(gang), *tries, pod("t1", "n2"))

    assert found.seats[0].pod == "third"
    assert found.findings[0].outcome is AuditOutcome.HELD


def follower(extra: str = "") -> tuple[Gang, Gang]:
    leader = Gang("base", (group("zone:all", "t0 t1"), group("rack:own", "t2")))
    return leader, Gang("more", (group("zone:all", "u0"), group("rack:other", "u1")), follows=extra or "base")


def test_a_group_shared_with_the_gang_it_follows_is_judged_over_both() -> None:
    leader, more = follower()
    pods = placed({"t0": "n1", "t1": "n3", "t2": "n4"})

    def shared(on: str) -> tuple[AuditOutcome, ...]:
        own = [pod("u0", on, gang="more"), pod("u1", "n4", gang="more")]
        found = run(pod_group(leader, name="base"), pod_group(more, name="more"), *as_base(pods), *own)
        return tuple(finding.outcome for finding in found.gangs[1].findings)

    assert shared("n2") == (AuditOutcome.HELD, AuditOutcome.HELD)
    assert shared("n4") == (AuditOutcome.VIOLATED, AuditOutcome.HELD)
    assert shared("") == (AuditOutcome.UNOBSERVABLE, AuditOutcome.HELD)


def as_base(pods: Sequence[Json]) -> list[Json]:
    return [{**one, "metadata": {**one["metadata"], "annotations": {"pod-group-name": "base"}}} for one in pods]


def test_a_gang_whose_leader_is_gone_or_waits_says_so() -> None:
    leader, more = follower()
    own = [pod("u0", "n1", gang="more"), pod("u1", "n4", gang="more")]

    alone = only(pod_group(more, name="more"), *own)
    early = run(pod_group(leader, name="base"), pod_group(more, name="more"), *own).gangs[1]

    assert alone.why == 'it follows "base", which is not in the snapshot: judged alone'
    assert early.why == 'it runs although "base", which it follows, does not'


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version":9}', '{"version":1,"levels":[]}'])
def test_a_damaged_annotation_is_said_and_the_fields_of_the_pod_group_count(text: str) -> None:
    spec = {"minMember": 2, "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": RACK}}
    data = pod_group(None, spec=spec, **{ANNOTATION: text})

    found = only(data, KAI_TOPOLOGY, *placed({"t0": "n1", "t1": "n3"}))

    assert [finding.outcome for finding in found.findings] == [AuditOutcome.UNOBSERVABLE, AuditOutcome.VIOLATED]
    assert "is damaged" in found.findings[0].why
    assert found.findings[0].level == ""


def foreign(**spec: Any) -> Json:
    return pod_group(None, spec=spec)


def asks(*, required: str = "", preferred: str = "", topology: str | None = "racks") -> Json:
    levels = {"requiredTopologyLevel": required, "preferredTopologyLevel": preferred}
    return {
        "topologyConstraint": {
            **({"topology": topology} if topology else {}),
            **{key: label for key, label in levels.items() if label},
        }
    }


def in_part(part: str, name: str, on: str) -> Json:
    return pod(name, on, name=name, labels={"kai.scheduler/subgroup-name": part, "coterie.dev/task": ""})


def test_a_pod_group_of_others_is_judged_by_its_own_fields() -> None:
    data = foreign(
        **asks(required=ZONE, preferred=RACK),
        subGroups=[
            {"name": "both", **asks(required=ZONE)},
            {"name": "x", "parent": "both", "minMember": 2, **asks(required=RACK)},
            {"name": "y", "parent": "both", "minMember": 1},
        ],
    )

    found = only(data, KAI_TOPOLOGY, in_part("x", "x0", "n1"), in_part("x", "x1", "n3"), in_part("y", "y0", "n3"))

    assert [(finding.path, finding.outcome) for finding in found.findings] == [
        (((ZONE, "default"),), AuditOutcome.HELD),
        (((ZONE, "default"), (RACK, "default")), AuditOutcome.MISSED),
        (((ZONE, "default"), (RACK, "default"), (ZONE, "both")), AuditOutcome.HELD),
        (((ZONE, "default"), (RACK, "default"), (ZONE, "both"), (RACK, "x")), AuditOutcome.VIOLATED),
    ]
    assert found.state is GangProgress.RUNNING


def test_a_leaf_below_its_number_makes_a_gang_incomplete() -> None:
    parts = [{"name": "x", "minMember": 2}, {"name": "y", "minMember": 1}]

    found = only(foreign(**asks(required=ZONE), subGroups=parts), in_part("x", "x0", "n1"), in_part("y", "y0", "n1"))

    assert (found.state, found.why) == (GangProgress.INCOMPLETE, '1 of 2 needed tasks of "x" does not run')


def test_a_cluster_topology_gives_the_levels_of_others_their_names() -> None:
    named = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "named"},
        "spec": {"levels": [{"domain": "zone", "key": ZONE}, {"domain": "rack", "key": RACK}]},
    }

    found = only(foreign(**asks(required=RACK), minMember=1), KAI_TOPOLOGY, named, pod("t0", "n1"))

    assert found.findings[0].level == "rack"
    assert found.seats[0].domains == {"zone": "a", "rack": "r1"}


@pytest.mark.parametrize(
    ("topology", "level", "where", "outcome", "why"),
    [
        ("other", RACK, ("n1", "n2"), AuditOutcome.UNOBSERVABLE, 'the KAI Topology "other" is not in the snapshot'),
        ("other", RACK, ("n1", "n3"), AuditOutcome.VIOLATED, "r1: t0 on n1; r2: t1 on n3"),
        (None, RACK, ("n1", "n2"), AuditOutcome.UNOBSERVABLE, "names no topology, so KAI ignores it"),
        ("racks", "spine", ("n1", "n2"), AuditOutcome.UNOBSERVABLE, 'the KAI Topology "racks" has no level spine'),
    ],
)
def test_what_a_topology_does_not_say_stays_open(
    topology: str | None, level: str, where: tuple[str, str], outcome: AuditOutcome, why: str
) -> None:
    data = foreign(**asks(required=level, topology=topology), minMember=2)
    pods = [pod(f"t{index}", on, name=f"t{index}") for index, on in enumerate(where)]

    (finding,) = only(data, KAI_TOPOLOGY, *pods).findings

    assert finding.outcome is outcome
    assert why in finding.why


def test_pod_groups_that_ask_for_nothing_are_counted_and_those_of_other_schedulers_are_not_read() -> None:
    other = {**foreign(minMember=1), "apiVersion": "scheduling.volcano.sh/v1beta1"}

    found = run(foreign(minMember=1), other, pod("t0", "n1"))

    assert (found.gangs, found.unconstrained) == ((), 1)


def test_pod_groups_of_one_name_in_two_namespaces_are_two() -> None:
    gang = Gang("g", (group("rack", "t0 t1"),))
    elsewhere = pod_group(gang)
    elsewhere["metadata"]["namespace"] = "other"

    found = run(pod_group(gang), elsewhere, *placed({"t0": "n1", "t1": "n2"}))

    assert [one.state for one in found.gangs] == [GangProgress.WAITING, GangProgress.RUNNING]


def test_the_json_of_an_audit_is_stable() -> None:
    gang = Gang("g", (group("rack:x", "t0 t1"),))

    found = audit_json(run(pod_group(gang), *placed({"t0": "n1", "t1": "n3"})))

    assert found == {
        "version": 1,
        "gangs": [
            {
                "namespace": "team",
                "name": "pg",
                "workload": "wf",
                "group": "g",
                "state": "running",
                "why": "",
                "constraints": [
                    {
                        "path": [["rack", "x"]],
                        "level": "rack",
                        "type": "required",
                        "outcome": "violated",
                        "domains": [["a", "r1"], ["a", "r2"]],
                        "why": "a/r1: t0 on n1; a/r2: t1 on n3",
                    }
                ],
                "tasks": [
                    {"task": "t0", "pod": "pod-t0", "node": "n1", "domains": {"zone": "a", "rack": "r1"}},
                    {"task": "t1", "pod": "pod-t1", "node": "n3", "domains": {"zone": "a", "rack": "r2"}},
                ],
            }
        ],
        "summary": {
            "gangs": 1,
            "running": 1,
            "incomplete": 0,
            "waiting": 0,
            "finished": 0,
            "constraints": 1,
            "held": 0,
            "missed": 0,
            "violated": 1,
            "unobservable": 0,
            "unconstrained": 0,
        },
    }


WORDS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.sampled_from(["", "x", "y", RACK, ZONE, "racks"]),
)
FIELDS = st.sampled_from(
    ["name", "parent", "minMember", "topologyConstraint", "subGroups", "topology", "requiredTopologyLevel"]
)
ANYTHING = st.recursive(
    WORDS, lambda below: st.lists(below, max_size=3) | st.dictionaries(FIELDS, below, max_size=4), max_leaves=12
)


@given(metadata=ANYTHING, spec=ANYTHING)
def test_no_pod_group_whatever_breaks_an_audit(metadata: Any, spec: Any) -> None:
    odd = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    named = {**odd, "metadata": {"name": "pg", "namespace": "team"}}

    audit_json(run(odd, named, KAI_TOPOLOGY, in_part("x", "t0", "n1"), in_part("", "t1", "n3")))


@given(where=st.lists(st.sampled_from(sorted(NODES)), min_size=1, max_size=6), required=st.booleans())
def test_an_outcome_is_what_the_labels_of_the_nodes_say(*, where: Sequence[str], required: bool) -> None:
    names = " ".join(f"t{index}" for index in range(len(where)))
    gang = Gang("g", (group("rack", names, required=required),))

    (finding,) = only(pod_group(gang), *placed(dict(zip(names.split(), where, strict=True)))).findings

    full = {NODES[on] for on in where if "/" in NODES[on]}
    zones = {NODES[on].split("/")[0] for on in where if NODES[on]}
    apart = len(full) > 1 or len(zones) > 1
    dark = any("/" not in NODES[on] for on in where)
    split = AuditOutcome.VIOLATED if required else AuditOutcome.MISSED
    assert finding.outcome is (split if apart else AuditOutcome.UNOBSERVABLE if dark else AuditOutcome.HELD)
