"""The status of a ClusterTopology and the event of its change, from what was read.

Pure: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from coterie.errors import Fault
from coterie.frontends.grove.conditions import DRIFT, GroveCondition
from coterie.frontends.grove.drift import Drift, drift_status, event_of
from coterie.frontends.grove.topology import ClusterTopology
from coterie.operator.status import Outcome, condition_in, event, status_of, with_condition

Object = Mapping[str, Any]


def outcome_of(about: Object, found: ClusterTopology, drift: Drift, at: datetime) -> Outcome:
    """Return the outcome for a valid topology whose schedulers were compared."""
    status = status_of(about)
    observed = status.get("observedGeneration")
    asked = drift_status(found, drift, observed if isinstance(observed, int) else 0)
    conditions = asked.pop("conditions")
    new = conditions[0] if conditions else None
    return _outcome(about, asked, new, drift.condition, at)


def invalid_outcome(about: Object, faults: tuple[Fault, ...], at: datetime) -> Outcome:
    """Return the outcome for a topology that its definition admits and that cannot be used."""
    generation = about["metadata"].get("generation", 0)
    message = "; ".join(fault.message for fault in faults)
    condition = GroveCondition("True", "Drift", f"the topology is invalid, so no scheduler follows it: {message}")
    new = {
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
    }
    asked: dict[str, Any] = {"observedGeneration": generation, "schedulerTopologyStatuses": []}
    return _outcome(about, asked, new, condition, at)


def _outcome(
    about: Object, asked: Mapping[str, Any], new: Object | None, condition: GroveCondition | None, at: datetime
) -> Outcome:
    status = status_of(about)
    old = condition_in(status, DRIFT)
    before = GroveCondition(old["status"], str(old.get("reason")), str(old.get("message"))) if old else None
    conditions = with_condition(status.get("conditions") or (), DRIFT, new, at)
    happened = None
    if (told := event_of(before, condition)) is not None and condition is not None:
        since = str(old.get("lastTransitionTime", "")) if old else ""
        happened = event(about, *told, condition.message, since, at)
    return Outcome({**status, **asked, "conditions": conditions}, happened)
