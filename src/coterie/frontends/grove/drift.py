"""Drift between a ClusterTopology and each scheduler's own topology resource.

A scheduler that the ClusterTopology refers to keeps its own resource: it is compared, by its labels and their order.
For any other topology-aware scheduler the resource has the name of the ClusterTopology and belongs to it: a controller
made it, or `coterie render` wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.frontends.grove.conditions import DRIFT, GroveCondition
from coterie.frontends.grove.kai_topology import KAI_VERSION, KaiTopology, Owner
from coterie.frontends.grove.topology import KAI, SCHEDULERS, TOPOLOGY_AWARE, ClusterTopology, kai_refuses
from coterie.topology.check import LabelFinding


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """The comparison of one scheduler's resource; `generation` is the resource's own, 0 where there is none.

    `failed` means that the scheduler's resource could not be written or read, so that another attempt is needed.
    """

    scheduler: str
    reference: str
    in_sync: bool
    generation: int = 0
    message: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """One entry per scheduler, and their aggregate: None where no scheduler has an entry."""

    entries: tuple[SchedulerStatus, ...]
    condition: GroveCondition | None


def drift_of(
    found: ClusterTopology,
    kai: Mapping[str, KaiTopology] | None,
    enabled: frozenset[str] = SCHEDULERS,
    failure: str = "",
) -> Drift:
    """Compare a ClusterTopology with the existing KAI Topologies; None means that KAI is not installed.

    `failure` is why KAI's resource could not be written; it takes precedence over the comparison.
    """
    entries = [_kai_entry(found.for_scheduler(KAI), kai)] if KAI in enabled & TOPOLOGY_AWARE else []
    if failure:
        entries = [replace(entry, in_sync=False, message=failure, failed=True) for entry in entries]
    lost = [_lost(each.scheduler, each.name, enabled) for each in found.references if _is_lost(each.scheduler, enabled)]
    entries += sorted(lost, key=lambda entry: entry.scheduler)
    return Drift(tuple(entries), _aggregate(entries, {entry.scheduler for entry in lost}))


def event_of(before: GroveCondition | None, after: GroveCondition | None) -> tuple[str, str] | None:
    """Return type and reason of the event for a change of the condition; None where nothing changed."""
    if after is None or (before is not None and before.status == after.status):
        return None
    return {"True": ("Warning", "TopologyDriftDetected"), "False": ("Normal", "TopologyInSync")}.get(after.status)


def drift_status(found: ClusterTopology, drift: Drift, observed: int = 0) -> dict[str, Any]:
    """Return the drift as the status of the object; the writer adds the transition times.

    `observed` is the generation of the last status. It is kept where a scheduler's resource failed.
    """
    reference = "reference" if found.kind == "ClusterTopology" else "topologyReference"
    condition = drift.condition
    return {
        "observedGeneration": observed if any(entry.failed for entry in drift.entries) else found.generation,
        "conditions": [
            {
                "type": DRIFT,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "observedGeneration": found.generation,
            }
        ]
        if condition
        else [],
        "schedulerTopologyStatuses": [
            {
                "schedulerName": entry.scheduler,
                reference: entry.reference,
                "inSync": entry.in_sync,
                "schedulerBackendTopologyObservedGeneration": entry.generation,
                "message": entry.message,
            }
            for entry in drift.entries
        ],
    }


def drift_findings(topologies: Mapping[str, ClusterTopology], kai: Mapping[str, KaiTopology]) -> Iterator[LabelFinding]:
    """Yield the drift in a snapshot; one without any KAI Topology shows none, since it may not have listed them."""
    if not kai:
        return
    for found in topologies.values():
        for entry in drift_of(found, kai).entries:
            if not entry.in_sync:
                hint = "Correct the one that is wrong; workloads name levels of the ClusterTopology, KAI knows its own."
                message = f'{found.kind} "{found.name}": {entry.message}'
                yield LabelFinding(DRIFT, "warning", "", message, hint=hint)


def _kai_entry(found: ClusterTopology, kai: Mapping[str, KaiTopology] | None) -> SchedulerStatus:
    external = found.reference(KAI)
    name = external or found.name
    if kai is None:
        message = f"the kind Topology of {KAI_VERSION} is not installed"
        return SchedulerStatus(KAI, name, in_sync=False, message=message, failed=True)
    there = kai.get(name)
    if there is None:
        message = f'there is no KAI Topology "{name}"'
        if refused := kai_refuses(found.keys):
            message += f", and {refused}"
        return SchedulerStatus(KAI, name, in_sync=False, message=message, failed=not external and bool(refused))
    if external is None and not owns(found, there.owner):
        holder = f'{there.owner.kind or "ClusterTopology"} "{there.owner.name}"' if there.owner else "nobody"
        message = (
            f'KAI Topology "{name}" exists and is controlled by {holder}, so it is not touched; '
            f"refer to it, or rename one of the two"
        )
        return SchedulerStatus(KAI, name, in_sync=False, generation=there.generation, message=message, failed=True)
    message = _difference(found.keys, there.keys)
    return SchedulerStatus(
        KAI, name, not message, there.generation, f'KAI Topology "{name}" {message}' if message else ""
    )


def owns(found: ClusterTopology, owner: Owner | None) -> bool:
    """Return whether a scheduler's resource with this owner belongs to a ClusterTopology."""
    if owner is None or owner.name != found.name or owner.kind not in {"", found.kind}:
        return False
    # An owner of the same name may have been deleted since.
    uid = found.resource.get("metadata", "uid")
    return not uid or not owner.uid or uid == owner.uid


def _difference(wanted: Sequence[str], there: Sequence[str]) -> str:
    """Return how the labels of a scheduler's resource differ, or an empty string."""
    if list(wanted) == list(there):
        return ""
    if sorted(wanted) == sorted(there):
        return f"has the levels in another order: {', '.join(there)} instead of {', '.join(wanted)}"
    missing = [key for key in wanted if key not in there]
    more = [key for key in there if key not in wanted]
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"has {', '.join(more)} besides"] if more else []
    # The remaining case is a label that occurs twice.
    return " and ".join(parts) or f"has the levels {', '.join(there)} instead of {', '.join(wanted)}"


def _is_lost(scheduler: str, enabled: frozenset[str]) -> bool:
    return scheduler not in enabled & TOPOLOGY_AWARE


def _lost(scheduler: str, reference: str, enabled: frozenset[str]) -> SchedulerStatus:
    why = "has no topology resource" if scheduler in enabled else "is not enabled"
    return SchedulerStatus(scheduler, reference, in_sync=False, message=f'scheduler "{scheduler}" {why}')


def _aggregate(entries: Sequence[SchedulerStatus], lost: set[str]) -> GroveCondition | None:
    if not entries:
        return None
    wrong = [entry for entry in entries if not entry.in_sync]
    words = "; ".join(entry.message for entry in wrong)
    if lost:
        return GroveCondition("Unknown", "TopologyNotFound", words)
    if wrong:
        return GroveCondition("True", "Drift", words)
    return GroveCondition("False", "InSync", "the topology resource of every scheduler has these levels")
