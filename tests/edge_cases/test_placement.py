"""Edge cases of placement that broke real systems, from a workflow's text to the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from coterie.config.configuration import GpuQuota, Pool
from coterie.errors import Reason
from coterie.placement.refusal import Verdict
from coterie.planning.inputs import read_snapshot
from coterie.planning.load import read_documents, workload_for
from coterie.planning.plan import Plan, Planner
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology
from tests.edge_cases.test_workflow_spec import ENGINE
from tests.frontends.workflow.samples import grouped, task
from tests.placement.twin import verify
from tests.planning.builders import cluster, drawn
from tests.scenarios.sketch import LABELS

RACKS = Topology.of(("rack", LABELS["rack"]))
RACK = "topology: [{key: rack}]"
WHOLE = {"w": (1, "gpu: 8, " + RACK)}
PLACED, WAITING, IMPOSSIBLE = Verdict.PLACED, Verdict.WAITING, Verdict.IMPOSSIBLE


def flow(kinds: Mapping[str, tuple[int, str]], name: str = "wf") -> str:
    """Return a workflow of one group: per kind of task how many there are, and their resource spec."""
    names = [f"{kind}{number}" for kind, (count, _) in kinds.items() for number in range(count)]
    tasks = [
        task(f"{kind}{number}", f"resource: {kind}", f"lead: {str(f'{kind}{number}' == names[0]).lower()}")
        for kind, (count, _) in kinds.items()
        for number in range(count)
    ]
    resources = "".join(f"  {kind}: {{{spec}}}\n" for kind, (_, spec) in kinds.items())
    return grouped(("g", *tasks), extra=f"resources:\n{resources}").replace("name: w\n", f"name: {name}\n")


def plan(planner: Planner, text: str, limit: int | None = None) -> Plan:
    pool = Pool("default", "local", "local", topology=RACKS, gpus=GpuQuota(limit=limit))
    (written,) = read_documents(text.encode(), "w.yaml").workloads
    return planner.plan(workload_for(written, pool, {}, configured=False))


def outcome(found: Plan) -> tuple[Verdict, Reason | None]:
    (one,) = found.gangs
    if one.decision.found:
        assert verify(one.gang, found.domains, one.decision.found, one.survivors) == []
    return found.verdict, one.decision.refusal.reason if one.decision.refusal else None


def nodes(found: Plan) -> list[str]:
    (one,) = found.gangs
    assert one.decision.found
    return sorted(one.decision.found.nodes.values())


@dataclass(frozen=True)
class Case:
    """A cluster, a workflow, and what must come of it; `on` are the nodes used, where only one answer is right."""

    id: str
    rows: str
    kinds: Mapping[str, tuple[int, str]]
    verdict: Verdict = PLACED
    reason: Reason | None = None
    on: tuple[str, ...] = ()
    notice: str = ""
    limit: int | None = None


def whole(count: int, more: str = "") -> dict[str, tuple[int, str]]:
    return {"w": (count, f"gpu: 8, {RACK}{more}")}


R1 = "cluster rack of 8\n  rack r1 [8 8 8 .:wf-12]"
R1_R2 = "cluster rack of 8\n  rack r1 [8 8 8 8]\n  rack r2 [8 8 .:wf-12 .:wf-12]"
CASES = [
    Case("T060", R1_R2, whole(5), IMPOSSIBLE, Reason.NEVER_FITS),
    Case("T061-exact", R1, whole(3), on=("r1-1", "r1-2", "r1-3")),
    Case("T061-one-short", R1, whole(4), WAITING, Reason.NO_CAPACITY),
    Case("T061-one-short-in-a-rack", R1_R2.replace("r1 [8 ", "r1 [.:wf-13 "), whole(4), WAITING, Reason.NO_DOMAIN_FITS),
    Case("T061-zero-free", "cluster rack of 8\n  rack r1 [. .]", whole(1), WAITING, Reason.NO_CAPACITY),
    Case("T062-remainder", "cluster rack\n  rack r1 [18x8]", whole(8), notice="DoesNotTile"),
    Case("T062-halves", "cluster rack\n  rack r1 [18x8]", whole(9)),
    Case(
        "T063",
        "cluster rack\n  rack r1 [2 4 3]",
        {"leader": (1, f"gpu: 1, {RACK}"), "worker": (4, f"gpu: 2, {RACK}")},
        on=("r1-1", "r1-2", "r1-2", "r1-3", "r1-3"),
    ),
    Case("T064", R1_R2, {"w": (3, f"gpu: 8, {RACK}"), "log": (1, f"cpu: 4, {RACK}")}),
    Case(
        "T064-cpu-short",
        "cluster rack\n  rack r1 [8]\n  node r1-1 cpu=2",
        {"w": (1, "cpu: 4")},
        IMPOSSIBLE,
        Reason.NEVER_FITS,
    ),
    Case("T065-nothing-asked", R1_R2, {"w": (3, RACK)}),
    Case("T065-zero-asked", R1_R2, {"w": (3, f"gpu: 0, cpu: 0, {RACK}")}),
    Case("T065-full-cluster", "cluster rack of 8\n  rack r1 [. .]", {"w": (2, RACK)}),
    Case("T069-a-node", R1_R2, whole(4, ", nodesExcluded: [r1-2]"), WAITING, Reason.NODES_EXCLUDED),
    Case("T069-a-rack", R1_R2, whole(3, ", nodesExcluded: [r1-1, r1-2, r1-3, r1-4]"), WAITING, Reason.NODES_EXCLUDED),
    Case("T069-all", R1, whole(1, ", nodesExcluded: [r1-1, r1-2, r1-3, r1-4]"), IMPOSSIBLE, Reason.NODES_EXCLUDED),
    Case("T069-unknown", R1, whole(3, ", nodesExcluded: [nowhere]"), on=("r1-1", "r1-2", "r1-3")),
    Case("T069-even-when-empty", R1, whole(4, ", nodesExcluded: [r1-4]"), IMPOSSIBLE, Reason.NODES_EXCLUDED),
    Case(
        "T101",
        "cluster rack of 8\n  rack r1 [8 8 8 .]\n  rack r2 [8 8 8 8]",
        whole(4),
        on=("r2-1", "r2-2", "r2-3", "r2-4"),
    ),
    Case("T102-no-node-fits", "cluster rack of 8\n  rack r1 [4 4]", whole(1), WAITING, Reason.NO_CAPACITY, limit=64),
    Case("T102-quota-full", R1, whole(2), IMPOSSIBLE, Reason.OVER_QUOTA, limit=8),
    Case("T102-both", R1, whole(9), IMPOSSIBLE, Reason.OVER_QUOTA, limit=8),
    Case(
        "T105",
        "cluster rack\n  rack r1 [8 8]\n  node r1-1 pods=1\n  node r1-2 pods=2",
        {"w": (3, f"gpu: 1, {RACK}")},
        on=("r1-1", "r1-2", "r1-2"),
    ),
    Case(
        "T105-one-more",
        "cluster rack\n  rack r1 [8 8]\n  node r1-1 pods=1\n  node r1-2 pods=2",
        {"w": (4, f"gpu: 1, {RACK}")},
        IMPOSSIBLE,
        Reason.NEVER_FITS,
    ),
    Case("T106-cordon", "cluster rack\n  rack r1 [8 8!]", whole(2), WAITING, Reason.NO_CAPACITY),
    Case(
        "T106-taint",
        "cluster rack\n  rack r1 [8 8]\n  node r1-1 taint=x:NoExecute",
        whole(2),
        IMPOSSIBLE,
        Reason.NEVER_FITS,
    ),
    Case("T110-all-or-none", R1, whole(3), on=("r1-1", "r1-2", "r1-3")),
    Case("T110-the-extra-one-counts", R1, whole(4), WAITING, Reason.NO_CAPACITY),
]

# These are about what happens to work over time, not about where it goes.
ELSEWHERE = {
    "T107": "nothing is preempted",
    "T108": "nothing is preempted",
    "T109": "a plan has all its tasks at once",
    "T111": "a plan creates nothing that could wait for something else",
    "T112": "a plan keeps no state that a restart could lose",
}
OWN_TESTS = {"T100", "T103", "T104", "T113", "T114"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_workflow_is_placed_or_refused_for_the_right_reason(case: Case) -> None:
    found = plan(Planner(cluster(drawn(case.rows))), flow(case.kinds), case.limit)

    assert outcome(found) == (case.verdict, case.reason)
    if case.on:
        assert tuple(nodes(found)) == case.on
    assert [notice.code for notice in found.notices if notice.code == case.notice] == (
        [case.notice] * bool(case.notice)
    )


def test_every_case_of_the_lists_is_here() -> None:
    covered = {case.id[:4] for case in CASES} | OWN_TESTS | set(ELSEWHERE)
    assert covered == set(ENGINE) | {f"T{number}" for number in range(100, 115)}


def test_t100_two_gangs_that_want_one_rack_do_not_share_it() -> None:
    planner = Planner(cluster(drawn("cluster rack\n  rack r1 [8 8 8]\n  rack r2 [8 8]")))

    first, second = (plan(planner, flow(whole(3), name)) for name in ("first", "second"))

    assert outcome(first) == (PLACED, None)
    assert outcome(second) == (WAITING, Reason.NO_CAPACITY)
    assert not second.gangs[0].decision.found


def pod(name: str, node: str, gpus: int, **more: Any) -> dict[str, Any]:
    """Return a pod as kubectl prints it."""
    requests = {"requests": {"nvidia.com/gpu": str(gpus)}}
    metadata = {"name": name, "namespace": "ns", **more}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": requests}]},
        "status": {"phase": "Running"},
    }


def listed(*pods: dict[str, Any]) -> Cluster:
    """Return two nodes of eight GPUs in one rack, with some pods, from the JSON of kubectl."""
    made = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {LABELS["rack"]: "r1"}},
            "status": {
                "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name in ("n1", "n2")
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*made, *pods]})
    return read_snapshot(text.encode(), "c.json").cluster


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "agent", "controller": True, "apiVersion": "apps/v1"}]}


def test_t103_a_pod_on_its_way_out_still_holds_its_gpus() -> None:
    assert outcome(plan(Planner(listed(pod("p", "n1", 1, **DELETED))), flow(whole(2)))) == (WAITING, Reason.NO_CAPACITY)


@pytest.mark.parametrize(
    ("more", "expected"),
    [({}, (WAITING, Reason.NO_CAPACITY)), (DAEMON, (IMPOSSIBLE, Reason.NEVER_FITS))],
    ids=["another scheduler's", "a DaemonSet's"],
)
def test_t104_pods_of_others_use_capacity_until_they_are_gone(
    more: dict[str, Any], expected: tuple[Verdict, Reason | None]
) -> None:
    assert outcome(plan(Planner(listed(pod("p", "n1", 1, **more))), flow(whole(2)))) == expected
    assert outcome(plan(Planner(listed()), flow(whole(2)))) == (PLACED, None)


@pytest.mark.parametrize("rows", [R1_R2, "cluster rack\n  rack r1 [5 3 8]\n  rack r2 [3 8 5]"])
def test_t113_the_same_snapshot_gives_the_identical_placement(rows: str) -> None:
    text = flow({"a": (2, f"gpu: 3, {RACK}"), "b": (1, f"gpu: 5, {RACK}"), "c": (2, "gpu: 1")})
    drawing = drawn(rows)
    backwards = drawing.domains(reverse=True).cluster

    first, again, shuffled = (plan(Planner(one), text) for one in (cluster(drawing), cluster(drawing), backwards))

    assert outcome(first) == (PLACED, None)
    assert first.gangs == again.gangs == shuffled.gangs


def test_t114_two_placements_of_one_call_do_not_overlap() -> None:
    planner = Planner(cluster(drawn("cluster rack of 8\n  rack r1 [8 8 4:x]\n  rack r2 [8 6:x]")))
    plans = [plan(planner, flow({"w": (3, f"gpu: 4, {RACK}")}, f"wf{number}")) for number in range(3)]

    used = [node for one in plans if one.verdict is PLACED for node in nodes(one)]
    room = {"r1-1": 2, "r1-2": 2, "r1-3": 1, "r2-1": 2, "r2-2": 1}

    assert [one.verdict for one in plans] == [PLACED, PLACED, WAITING]
    assert {name: used.count(name) for name in used if used.count(name) > room[name]} == {}
