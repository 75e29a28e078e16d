"""The status of a ClusterTopology, field by field, and the events of its changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from coterie.errors import Fault
from coterie.frontends.grove.drift import drift_of
from coterie.frontends.grove.kai_topology import read_kai_topologies
from coterie.frontends.grove.topology import SCHEDULERS, read_cluster_topology
from coterie.frontends.kubernetes.objects import resource_of
from coterie.operator.status import Outcome
from coterie.operator.topologies.reconcile import invalid_outcome, outcome_of
from tests.operator.topologies.world import KAI, World, topology, topology_object

AT = datetime(2026, 1, 1, tzinfo=UTC)
LEVELS = [{"domain": "zone", "key": "zone"}]


def outcome(about: dict[str, Any], there: dict[str, Any] | None, enabled: frozenset[str] = SCHEDULERS) -> Outcome:
    found = read_cluster_topology(resource_of(about), None)
    kai = None if there is None else read_kai_topologies(list(there.values()))[0]
    return outcome_of(about, found, drift_of(found, kai, enabled), AT)


def condition(found: Outcome) -> tuple[str, str]:
    return found.status["conditions"][0]["status"], found.status["conditions"][0]["reason"]


def entry(found: Outcome) -> tuple[bool, int]:
    only = found.status["schedulerTopologyStatuses"][0]
    return only["inSync"], only["schedulerBackendTopologyObservedGeneration"]


def own() -> World:
    world = World()
    world.finish(topology("zone"))
    world.topologies["hall"]["metadata"]["generation"] = 1
    return world


def test_a_topology_in_agreement_is_reported_so_once() -> None:
    about = topology_object(LEVELS)
    first = outcome(about, own().topologies)

    assert condition(first) == ("False", "InSync")
    assert entry(first) == (True, 1)
    assert first.status["observedGeneration"] == 3
    assert first.event is not None
    assert (first.event["type"], first.event["reason"]) == ("Normal", "TopologyInSync")
    again = outcome({**about, "status": first.status}, own().topologies)
    assert again.status == first.status
    assert again.event is None


def test_external_topologies_are_compared_by_labels_and_order() -> None:
    reference = [{"schedulerName": "kai-scheduler", "reference": "theirs"}]
    levels = [{"domain": "zone", "key": "zone"}, {"domain": "rack", "key": "rack"}]
    about = topology_object(levels, schedulerReferences=reference)
    missing = outcome(about, {})
    assert (condition(missing), entry(missing)) == (("True", "Drift"), (False, 0))
    # A missing external resource is no failure of this operator.
    assert missing.status["observedGeneration"] == 3

    theirs = KAI.manifest("theirs", "", ["rack", "zone"])
    theirs["metadata"]["generation"] = 4
    turned = outcome(about, {"theirs": theirs})
    assert (condition(turned), entry(turned)) == (("True", "Drift"), (False, 4))
    assert "another order" in turned.status["conditions"][0]["message"]
    assert turned.event is not None
    assert turned.event["reason"] == "TopologyDriftDetected"

    healed = outcome({**about, "status": turned.status}, {"theirs": KAI.manifest("theirs", "", ["zone", "rack"])})
    assert condition(healed) == ("False", "InSync")
    assert healed.event is not None
    assert healed.event["reason"] == "TopologyInSync"


def test_a_scheduler_that_is_not_enabled_is_not_known_and_without_any_there_is_no_condition() -> None:
    reference = [{"schedulerName": "kai-scheduler", "reference": "theirs"}]
    lost = outcome(topology_object(LEVELS, schedulerReferences=reference), {}, frozenset())
    assert condition(lost) == ("Unknown", "TopologyNotFound")
    assert lost.event is None

    none = outcome(topology_object(LEVELS), {}, frozenset())
    assert none.status["conditions"] == []
    assert none.status["schedulerTopologyStatuses"] == []


def test_a_missing_kind_is_drift_and_leaves_the_observed_generation() -> None:
    about = {**topology_object(LEVELS), "status": {"observedGeneration": 2}}
    found = outcome(about, None)

    assert condition(found) == ("True", "Drift")
    assert "not installed" in found.status["conditions"][0]["message"]
    assert found.status["observedGeneration"] == 2


def test_conditions_and_fields_of_others_stay_in_the_status() -> None:
    about = {**topology_object(LEVELS), "status": {"conditions": [{"type": "Ready", "status": "True"}], "more": 1}}
    found = outcome(about, own().topologies)

    assert [each["type"] for each in found.status["conditions"]] == ["Ready", "SchedulerTopologyDrift"]
    assert found.status["more"] == 1


def test_an_invalid_topology_is_drift_with_its_faults() -> None:
    found = invalid_outcome(topology_object([]), (Fault("a ClusterTopology needs at least one level"),), AT)

    assert condition(found) == ("True", "Drift")
    assert "needs at least one level" in found.status["conditions"][0]["message"]
