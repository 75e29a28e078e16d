"""The conditions of PodCliqueSets and graph deployments about the levels that they name, from what was read.

Nothing that runs is touched: a condition and an event tell that a level is gone, and that it is back.

Pure: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from coterie.errors import field_path
from coterie.frontends.dynamo.conditions import DynamoCondition, levels_available
from coterie.frontends.grove.conditions import LEVELS_AVAILABLE, LEVELS_UNAVAILABLE, GroveCondition
from coterie.frontends.grove.podcliqueset.model import TopologyConstraint
from coterie.operator.status import Outcome, condition_in, event, status_of, with_condition
from coterie.topology.levels import Topology

Object = Mapping[str, Any]

# The field of a graph's status that lists its constraints, and whether each is in force.
APPLIED = "appliedTopologyConstraints"


def set_outcome(about: Object, condition: GroveCondition | None, at: datetime) -> Outcome:
    """Return the outcome for a PodCliqueSet; None removes the condition."""
    return _outcome(about, LEVELS_UNAVAILABLE, condition, "False", {}, at)


def graph_outcome(
    about: Object, behind: GroveCondition | None, applied: Sequence[Object] | None, at: datetime
) -> Outcome:
    """Return the outcome for a graph deployment whose PodCliqueSet has this condition, None where it has none yet.

    `applied` are the constraints in force; None stands for a graph without constraints, which has no condition.
    """
    if applied is None:
        return _outcome(about, LEVELS_AVAILABLE, None, "True", {APPLIED: None}, at)
    found = levels_available(DynamoCondition(behind.status, behind.reason) if behind else None)
    message = behind.message if behind else "the PodCliqueSet of the graph has no condition about its levels yet"
    condition = GroveCondition(found.status, found.reason, message)
    return _outcome(about, LEVELS_AVAILABLE, condition, "True", {APPLIED: list(applied)}, at)


def applied_constraints(
    constraints: Sequence[TopologyConstraint], topologies: Mapping[str, Topology]
) -> list[dict[str, Any]]:
    """Return the constraints of an object as its status lists them; one whose level is gone is not in force."""
    name = next((each.topology for each in constraints if each.topology), "")
    topology = topologies.get(name)
    found = []
    for each in constraints:
        for kind, domain in (("required", each.domain), ("preferred", each.preferred)):
            if domain:
                known = topology is not None and domain in topology.names
                label = topology.levels[topology.index(domain)].label if topology is not None and known else ""
                found.append(
                    {
                        "field": field_path(each.path),
                        "topologyName": each.topology or name,
                        kind: domain,
                        **({"nodeLabel": label} if label else {}),
                        "applied": known,
                    }
                )
    return found


def condition_of(about: Object) -> GroveCondition | None:
    """Return the condition of a PodCliqueSet about its levels, if it has one."""
    found = condition_in(about.get("status"), LEVELS_UNAVAILABLE)
    status = found.get("status") if found else None
    if found is None or status not in ("True", "False", "Unknown"):
        return None
    return GroveCondition(status, str(found.get("reason", "")), str(found.get("message", "")))


def _outcome(
    about: Object, type_: str, new: GroveCondition | None, good: str, fields: Mapping[str, Any], at: datetime
) -> Outcome:
    """Return the outcome for a condition; fields that are None are removed from the status."""
    status = status_of(about)
    old = condition_in(status, type_)
    wanted = None
    if new is not None:
        generation = about["metadata"].get("generation", 0)
        wanted = {"status": new.status, "reason": new.reason, "message": new.message, "observedGeneration": generation}
    conditions = with_condition(status.get("conditions") or (), type_, wanted, at)
    asked = {**status, **fields, **({"conditions": conditions} if conditions or "conditions" in status else {})}
    kept = {name: value for name, value in asked.items() if value is not None}
    return Outcome(kept, _event(about, old, new, good, at))


def _event(
    about: Object, old: Mapping[str, Any] | None, new: GroveCondition | None, good: str, at: datetime
) -> dict[str, Any] | None:
    """Return the event of a change: a Warning for every new problem, and a Normal one when the last one has ended."""
    before = (old.get("status"), old.get("reason")) if old else None
    if new is None or before == (new.status, new.reason) or new.status == "Unknown":
        return None
    if new.status == good and (before is None or before[0] in {good, "Unknown"}):
        return None
    # A problem may become another one while the status, and with it the time of its transition, stays.
    since = f"{old.get('lastTransitionTime', '')} {old.get('reason', '')}" if old else ""
    return event(about, "Normal" if new.status == good else "Warning", new.reason, new.message, since, at)
