"""Drift between a ClusterTopology and the topology resources of schedulers, by the numbers of the table of cases."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.frontends.grove.conditions import GroveCondition
from coterie.frontends.grove.drift import (
    Drift,
    drift_findings,
    drift_of,
    drift_status,
    event_of,
)
from coterie.frontends.grove.kai_topology import KAI_VERSION, KaiTopology, Owner, read_kai_topologies
from coterie.frontends.grove.topology import KAI, SCHEDULERS, ClusterTopology, read_cluster_topology
from coterie.frontends.kubernetes.objects import resource_of
from tests.frontends.grove.test_cluster_topology import BLOCK, CT, CTB, HOST, LEVELS, RACK, ZONE, Pairs, made, many

KEYS = tuple(key for _, key in LEVELS)
OWNED = KaiTopology("t", KEYS, 4, Owner(CTB, "t"))


def topology(levels: Pairs = LEVELS, bound: Pairs = (), kind: str = CTB, generation: int = 7) -> ClusterTopology:
    data = made(kind, levels, bound)
    data["metadata"] |= {"generation": generation, "uid": "u1"}
    return read_cluster_topology(resource_of(data), None)


def found(declared: ClusterTopology, *kai: KaiTopology, enabled: frozenset[str] = SCHEDULERS) -> Drift:
    return drift_of(declared, {each.name: each for each in kai}, enabled)


def aggregate(drift: Drift) -> tuple[str, str] | None:
    return (drift.condition.status, drift.condition.reason) if drift.condition else None


BOUND = topology(bound=[(KAI, "own")])
OWN = KaiTopology("own", KEYS, 3)
NO_KAI = SCHEDULERS - {KAI}
IN_SYNC, DRIFT, NOT_FOUND = ("False", "InSync"), ("True", "Drift"), ("Unknown", "TopologyNotFound")


@pytest.mark.parametrize(
    ("drift", "expected", "entries"),
    [
        pytest.param(found(topology(many(20))), DRIFT, [(KAI, "t", False, 0)], id="G06 20 levels"),
        pytest.param(found(topology(), OWNED), IN_SYNC, [(KAI, "t", True, 4)], id="G08 same name, owned"),
        pytest.param(
            found(topology([ZONE, RACK, HOST]), KaiTopology("t", (ZONE[1], RACK[1]), 1, Owner(CTB, "t"))),
            DRIFT,
            [(KAI, "t", False, 1)],
            id="G09 a level more, before the resource is made anew",
        ),
        pytest.param(
            found(topology([ZONE, RACK, HOST]), KaiTopology("t", (ZONE[1], RACK[1], HOST[1]), 1, Owner(CTB, "t"))),
            IN_SYNC,
            [(KAI, "t", True, 1)],
            id="G09 a level more, after it",
        ),
        pytest.param(found(BOUND), DRIFT, [(KAI, "own", False, 0)], id="G10 bound to an absent one"),
        pytest.param(
            found(BOUND, KaiTopology("own", KEYS[::-1], 3)), DRIFT, [(KAI, "own", False, 3)], id="G11 another order"
        ),
        pytest.param(found(BOUND, OWN), IN_SYNC, [(KAI, "own", True, 3)], id="G12 corrected"),
        pytest.param(
            found(topology(), KaiTopology("t", KEYS, 2)), DRIFT, [(KAI, "t", False, 2)], id="G13 owned by nobody"
        ),
        pytest.param(
            found(topology(), KaiTopology("t", KEYS, 2, Owner(CTB, "t", "u0"))),
            DRIFT,
            [(KAI, "t", False, 2)],
            id="G13 owned by one that was deleted",
        ),
        pytest.param(found(BOUND, OWN, enabled=NO_KAI), NOT_FOUND, [(KAI, "own", False, 0)], id="G14 disabled since"),
        pytest.param(
            found(topology(bound=[("volcano", "v")]), OWNED),
            NOT_FOUND,
            [(KAI, "t", True, 4), ("volcano", "v", False, 0)],
            id="G14 no topology support",
        ),
        pytest.param(
            found(topology(bound=[("volcano", "v"), (KAI, "own")])),
            NOT_FOUND,
            [(KAI, "own", False, 0), ("volcano", "v", False, 0)],
            id="G14 goes before drift",
        ),
        pytest.param(found(topology(), enabled=NO_KAI), None, [], id="G15 nothing to compare"),
        pytest.param(drift_of(BOUND, None), DRIFT, [(KAI, "own", False, 0)], id="KAI is not installed"),
        pytest.param(found(topology()), DRIFT, [(KAI, "t", False, 0)], id="not made yet"),
    ],
)
def test_drift_has_one_aggregate_and_an_entry_for_each_scheduler(
    drift: Drift, expected: tuple[str, str] | None, entries: list[tuple[str, str, bool, int]]
) -> None:
    assert aggregate(drift) == expected
    assert [(each.scheduler, each.reference, each.in_sync, each.generation) for each in drift.entries] == entries
    assert all(bool(each.message) is not each.in_sync for each in drift.entries)


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        (found(BOUND), 'there is no KAI Topology "own"'),
        (found(BOUND, KaiTopology("own", KEYS[::-1])), "in another order"),
        (found(BOUND, KaiTopology("own", (*KEYS[:2], "x"))), f"lacks {RACK[1]}, {HOST[1]} and has x besides"),
        (found(BOUND, KaiTopology("own", (*KEYS, KEYS[0]))), "has the levels"),
        (found(topology(many(20))), "KAI takes at most 16 levels, not 20"),
        (found(topology(), KaiTopology("t", KEYS)), "controlled by nobody"),
        (found(topology(), KaiTopology("t", KEYS, 1, Owner(CTB, "other"))), f'controlled by {CTB} "other"'),
        (found(BOUND, enabled=NO_KAI), 'scheduler "kai-scheduler" is not enabled'),
        (found(topology(bound=[("volcano", "v")])), 'scheduler "volcano" has no topology resource'),
        (drift_of(BOUND, None), "is not installed"),
    ],
)
def test_a_message_says_what_differs(drift: Drift, words: str) -> None:
    assert words in drift.entries[-1].message
    assert drift.condition
    assert words in drift.condition.message


YES, NO, MAYBE = (GroveCondition(status, "", "") for status in ("True", "False", "Unknown"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(YES, NO, ("Normal", "TopologyInSync"), id="G12a corrected"),
        pytest.param(None, NO, ("Normal", "TopologyInSync"), id="G12a first seen"),
        pytest.param(YES, YES, None, id="G12b seen twice"),
        pytest.param(NO, YES, ("Warning", "TopologyDriftDetected"), id="drifted"),
        pytest.param(NO, MAYBE, None, id="not known any more"),
        pytest.param(MAYBE, YES, ("Warning", "TopologyDriftDetected"), id="known again"),
        pytest.param(YES, None, None, id="nothing to compare any more"),
    ],
)
def test_an_event_is_worth_a_change_of_status(
    before: GroveCondition | None, after: GroveCondition | None, expected: tuple[str, str] | None
) -> None:
    assert event_of(before, after) == expected


def test_g10_an_absent_resource_is_no_failure_so_the_generation_is_observed() -> None:
    status = drift_status(BOUND, found(BOUND), observed=6)
    assert status["observedGeneration"] == 7
    (entry,) = status["schedulerTopologyStatuses"]
    assert entry == {
        "schedulerName": KAI,
        "topologyReference": "own",
        "inSync": False,
        "schedulerBackendTopologyObservedGeneration": 0,
        "message": 'there is no KAI Topology "own"',
    }
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("SchedulerTopologyDrift", *DRIFT)


def test_g13_a_resource_of_somebody_else_is_a_failure_so_the_generation_is_not() -> None:
    declared = topology()
    assert drift_status(declared, found(declared, KaiTopology("t", KEYS)), observed=6)["observedGeneration"] == 6


def test_g15_without_anything_to_compare_there_is_no_condition() -> None:
    declared = topology()
    assert drift_status(declared, found(declared, enabled=NO_KAI))["conditions"] == []


def test_the_status_of_a_cluster_topology_calls_the_reference_by_its_own_name() -> None:
    declared = topology(kind=CT, bound=[(KAI, "own")])
    (entry,) = drift_status(declared, found(declared))["schedulerTopologyStatuses"]
    assert entry["reference"] == "own"


def kai_object(name: str = "t", keys: tuple[str, ...] = KEYS, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": KAI_VERSION,
        "kind": "Topology",
        "metadata": {"name": name, **more},
        "spec": {"levels": [{"nodeLabel": key} for key in keys]},
    }


def test_kai_topologies_are_read_with_generation_and_controller() -> None:
    owners = [{"kind": "X", "name": "x"}, {"kind": CTB, "name": "t", "uid": "u1", "controller": True}]
    other = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "q"}}
    kai, notices = read_kai_topologies([kai_object(generation=4, ownerReferences=owners), other])
    assert kai == {"t": KaiTopology("t", KEYS, 4, Owner(CTB, "t", "u1"))}
    assert notices == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metadata": None}, "has no name"),
        ({"metadata": {"name": 5}}, "has no name"),
        ({"spec": []}, "no list of levels"),
        ({"spec": {"levels": {}}}, "no list of levels"),
        ({"spec": {"levels": [{"nodeLabel": 1}]}}, "without a nodeLabel"),
        ({"spec": {"levels": [7]}}, "without a nodeLabel"),
    ],
)
def test_a_wrong_kai_topology_is_noted_and_ignored(wrong: dict[str, Any], words: str) -> None:
    kai, (notice,) = read_kai_topologies([kai_object() | wrong])
    assert kai == {}
    assert words in notice.message


def test_drift_is_found_only_where_kai_was_asked() -> None:
    declared = {"t": topology()}
    assert list(drift_findings(declared, {})) == []
    assert list(drift_findings(declared, {"t": OWNED})) == []
    (finding,) = drift_findings(declared, {"u": KaiTopology("u", (BLOCK[1],))})
    assert (finding.code, finding.severity) == ("SchedulerTopologyDrift", "warning")
