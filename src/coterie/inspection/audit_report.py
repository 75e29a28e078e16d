"""An audit as JSON for scripts; version 1 only ever gains fields."""

from __future__ import annotations

from typing import Any

from coterie.inspection.audit import Audit, AuditedGang, AuditOutcome, ConstraintFinding, GangProgress

VERSION = 1

Json = dict[str, Any]


def audit_json(found: Audit) -> Json:
    """Return the JSON object of an audit."""
    states = found.states()
    return {
        "version": VERSION,
        "gangs": [_gang(gang) for gang in found.gangs],
        "summary": {
            "gangs": len(found.gangs),
            **{state.value: states[state] for state in GangProgress},
            "constraints": sum(len(gang.findings) for gang in found.gangs),
            **{outcome.value: found.count(outcome) for outcome in AuditOutcome},
            "unconstrained": found.unconstrained,
        },
    }


def _gang(gang: AuditedGang) -> Json:
    asked = gang.asked
    return {
        "namespace": asked.namespace,
        "name": asked.name,
        "workload": asked.workload,
        "group": asked.group,
        "state": gang.state.value,
        "why": gang.why,
        "constraints": [finding_json(finding) for finding in gang.findings],
        "tasks": [
            {"task": seat.task, "pod": seat.pod or None, "node": seat.node or None, "domains": dict(seat.domains)}
            for seat in gang.seats
        ],
    }


def finding_json(finding: ConstraintFinding) -> Json:
    """Return the JSON object of one constraint's outcome."""
    return {
        "path": [list(step) for step in finding.path],
        "level": finding.level or None,
        "type": "required" if finding.required else "preferred",
        "outcome": finding.outcome.value,
        "domains": [list(domain) for domain in finding.domains],
        "why": finding.why,
    }
