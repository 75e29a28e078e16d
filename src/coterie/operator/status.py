"""Conditions with transition times, and events of their changes.

Pure: the time is an argument, and the result is compared by the caller with what is already there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

COMPONENT = "coterie-operator"
# Kubernetes keeps the events of objects without a namespace here.
CLUSTER_EVENTS = "default"
_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """The status that an object should have, and the event of the change; None where there is none."""

    status: Object
    event: Object | None


def status_of(about: Mapping[str, Any]) -> Object:
    """Return the status of an object, empty where it has none."""
    found = about.get("status")
    return dict(found) if isinstance(found, Mapping) else {}


def timestamp(at: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition_in(status: object, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of a type in a status, if it has one."""
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == type_:
            return each
    return None


def with_condition(
    conditions: Sequence[Mapping[str, Any]], type_: str, new: Mapping[str, Any] | None, at: datetime
) -> list[dict[str, Any]]:
    """Return conditions with one of them set, or removed; its transition time changes only with its status."""
    kept = [dict(each) for each in conditions if each.get("type") != type_]
    if new is None:
        return kept
    old = next((each for each in conditions if each.get("type") == type_), None)
    same = old is not None and old.get("status") == new["status"] and old.get("lastTransitionTime")
    moment = old["lastTransitionTime"] if same and old is not None else timestamp(at)
    return [*kept, {**new, "type": type_, "lastTransitionTime": moment}]


def event(about: Mapping[str, Any], type_: str, reason: str, message: str, before: str, at: datetime) -> Object:
    """Return the event of a change of a condition.

    Its name follows from the change, so that writing it again after a crash creates no second one. `before` is the
    transition time of the condition that ended, empty for the first one.
    """
    metadata = about["metadata"]
    namespace = metadata.get("namespace") or CLUSTER_EVENTS
    change = "\0".join((str(metadata.get("uid", "")), reason, before))
    name = f"{metadata['name'][:200]}.{hashlib.sha256(change.encode()).hexdigest()[:16]}"
    moment = timestamp(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
            **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
        },
        "type": type_,
        "reason": reason,
        "message": message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 1]}…",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
