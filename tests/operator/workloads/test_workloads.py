"""Conditions of PodCliqueSets and graph deployments about their levels, and the objects that a topology concerns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from coterie.frontends.dynamo.written_constraints import graph_constraints, transfer_policy
from coterie.frontends.grove.availability import constraints_unavailable
from coterie.frontends.grove.conditions import LEVELS_AVAILABLE, LEVELS_UNAVAILABLE, GroveCondition
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.grove.podcliqueset.written_constraints import set_constraints
from coterie.kube.cache import CacheChange, CacheEntry, ChangeType
from coterie.kube.kinds import GRAPH_DEPLOYMENT, POD_CLIQUE_SET, ObjectKind
from coterie.kube.wire import Meta
from coterie.operator.status import Outcome, condition_in
from coterie.operator.workloads.reconcile import APPLIED, applied_constraints, graph_outcome, set_outcome
from coterie.operator.workloads.references import TopologyReferences
from tests.cli.sample_files import packed
from tests.frontends.dynamo.objects import LEVELS, alpha, beta

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
GOOD = GroveCondition("False", "AllClusterTopologyLevelsAvailable", "all there")
GONE = GroveCondition("True", "ClusterTopologyLevelsUnavailable", "no rack")
MISSING = GroveCondition("True", "ClusterTopologyNotFound", "no topology")


def told(found: Outcome, type_: str = LEVELS_UNAVAILABLE) -> tuple[str, str]:
    condition = condition_in(found.status, type_)
    assert condition is not None
    return condition["status"], condition["reason"]


def event_of(found: Outcome) -> tuple[str, str] | None:
    return (found.event["type"], found.event["reason"]) if found.event else None


def test_a_set_gets_a_warning_for_each_new_problem_and_one_event_when_it_has_ended() -> None:
    about = packed()
    seen = []
    for step, condition in enumerate((GOOD, GONE, GONE, MISSING, GOOD, GOOD)):
        found = set_outcome(about, condition, AT + timedelta(minutes=step))
        assert told(found) == (condition.status, condition.reason)
        seen.append(event_of(found))
        about = {**about, "status": found.status}

    assert seen == [
        None,
        ("Warning", "ClusterTopologyLevelsUnavailable"),
        None,
        ("Warning", "ClusterTopologyNotFound"),
        ("Normal", "AllClusterTopologyLevelsAvailable"),
        None,
    ]


def test_an_event_that_is_written_again_after_a_crash_has_the_same_name() -> None:
    about = {**packed(), "status": set_outcome(packed(), GOOD, AT).status}
    names = {(set_outcome(about, GONE, at).event or {})["metadata"]["name"] for at in (AT, LATER)}

    assert len(names) == 1


def test_other_conditions_and_fields_of_a_status_are_kept() -> None:
    theirs = {"type": "Ready", "status": "True"}
    about = {**packed(), "status": {"replicas": 3, "conditions": [theirs]}}
    found = set_outcome(about, GONE, AT).status

    assert found["replicas"] == 3
    assert found["conditions"][0] == theirs
    assert set_outcome({**about, "status": found}, None, AT).status == about["status"]


def test_a_graph_follows_its_set_and_lists_the_constraints_in_force() -> None:
    applied = applied_constraints(graph_constraints(beta()), {"t": LEVELS})
    found = graph_outcome(beta(), GOOD, applied, AT)
    assert told(found, LEVELS_AVAILABLE) == ("True", "AllTopologyLevelsAvailable")
    assert found.status[APPLIED] == [
        {
            "field": "spec.topologyConstraint",
            "topologyName": "t",
            "required": "zone",
            "nodeLabel": "topology.kubernetes.io/zone",
            "applied": True,
        },
        {
            "field": "spec.components[1].topologyConstraint",
            "topologyName": "t",
            "required": "rack",
            "nodeLabel": "fabric.example/rack",
            "applied": True,
        },
    ]
    assert event_of(found) is None
    about = {**beta(), "status": found.status}
    lost = graph_outcome(about, MISSING, applied_constraints(graph_constraints(beta()), {}), LATER)
    assert told(lost, LEVELS_AVAILABLE) == ("False", "TopologyDefinitionNotFound")
    assert event_of(lost) == ("Warning", "TopologyDefinitionNotFound")
    assert [each["applied"] for each in lost.status[APPLIED]] == [False, False]
    back = graph_outcome({**about, "status": lost.status}, GOOD, applied, LATER)
    assert event_of(back) == ("Normal", "AllTopologyLevelsAvailable")


def test_g68_a_graph_gets_a_warning_on_entering_false_and_on_a_new_reason_only() -> None:
    def events(*conditions: GroveCondition) -> list[tuple[str, str] | None]:
        about, seen = beta(), []
        for step, condition in enumerate(conditions):
            found = graph_outcome(about, condition, [], AT + timedelta(minutes=step))
            seen.append(event_of(found))
            about = {**about, "status": found.status}
        return seen

    missing, gone = ("Warning", "TopologyDefinitionNotFound"), ("Warning", "TopologyLevelsUnavailable")
    assert events(MISSING, MISSING, GONE) == [missing, None, gone]
    assert events(GOOD, MISSING) == [None, missing]


def test_a_graph_whose_set_has_no_condition_yet_is_pending_and_one_without_constraints_has_none() -> None:
    pending = graph_outcome(beta(), None, [], AT)
    assert told(pending, LEVELS_AVAILABLE) == ("Unknown", "TopologyConditionPending")
    assert event_of(pending) is None
    assert graph_outcome({**beta(), "status": pending.status}, None, None, AT).status == {"conditions": []}


def names_and_domains(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each.topology, each.domain, each.preferred) for each in graph_constraints(data)]


@pytest.mark.parametrize("graph", [alpha(), beta()])
def test_constraints_of_a_graph_are_found_in_both_versions(graph: dict[str, Any]) -> None:
    assert sorted(names_and_domains(graph)) == [("t", "rack", ""), ("t", "zone", "")]


def test_constraints_are_found_in_fragments_of_groves_api_and_beside_unknown_fields() -> None:
    graph = beta()
    graph["spec"].pop("topologyConstraint")
    graph["spec"]["fromTheFuture"] = {"a": 1}
    graph["spec"]["providerOverride"] = {
        "value": {"spec": {"template": {"topologyConstraint": {"topologyName": "t", "pack": {"preferred": "rack"}}}}}
    }
    decode = graph["spec"]["components"][1]
    decode.pop("topologyConstraint")
    inner = {"value": {"topologyConstraint": {"pack": {"required": "host"}}}}
    decode["multinode"]["worker"] = {"providerOverride": inner}
    graph["spec"]["experimental"] = {"kvTransferPolicy": {"clusterTopologyName": "u", "domain": "zone"}}

    assert names_and_domains(graph) == [("t", "", "rack"), ("", "host", "")]
    policy = transfer_policy(graph)
    assert policy is not None
    assert (policy.topology, policy.domain) == ("u", "zone")


@pytest.mark.parametrize(
    "broken", [{}, {"spec": None}, {"spec": {"template": []}}, {"spec": {"components": [None, 3]}}]
)
def test_objects_of_any_shape_have_no_constraints(broken: dict[str, Any]) -> None:
    assert set_constraints(broken) == ()
    assert graph_constraints(broken) == ()
    assert constraints_unavailable((), {}, GroveSettings()) is not None


def change(data: dict[str, Any], did: ChangeType = ChangeType.MODIFIED) -> CacheChange[dict[str, Any]]:
    return CacheChange(did, CacheEntry(msgspec.convert(data["metadata"], Meta), data))


def keys(kind: ObjectKind, namespace: str, *names: str) -> set[tuple[str, str, str]]:
    return {(kind.name, namespace, name) for name in names}


def test_a_topology_concerns_the_objects_that_name_it_and_no_others() -> None:
    references = TopologyReferences()
    data = packed()
    other = {**packed("rack", "u"), "metadata": {**data["metadata"], "name": "other"}}
    made = {**data, "metadata": {**data["metadata"], "name": "chat", "labels": {}}}
    made["metadata"]["ownerReferences"] = [{"kind": "DynamoGraphDeployment", "name": "chat"}]
    references.changed(POD_CLIQUE_SET, change(data))
    references.changed(POD_CLIQUE_SET, change(other))
    concerned = references.changed(POD_CLIQUE_SET, change(made))
    references.changed(GRAPH_DEPLOYMENT, change(beta()))
    graph = (GRAPH_DEPLOYMENT.name, "serving", "chat")

    assert set(concerned) == keys(POD_CLIQUE_SET, "serving", "chat") | {graph}
    assert references.set_of(graph) == "chat"
    assert set(references.users("t")) == keys(POD_CLIQUE_SET, "serving", "set", "chat") | {graph}
    assert set(references.users("u")) == keys(POD_CLIQUE_SET, "serving", "other")
    references.changed(POD_CLIQUE_SET, change(other, ChangeType.DELETED))
    references.changed(POD_CLIQUE_SET, change(made, ChangeType.DELETED))
    assert references.users("u") == ()
    assert references.set_of(graph) == ""
