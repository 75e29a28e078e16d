"""Conditions and events: times change with the status alone, and a change has one event."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from coterie.operator.status import condition_in, event, with_condition

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
ABOUT: dict[str, Any] = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopology",
    "metadata": {"name": "hall", "uid": "u1", "resourceVersion": "7"},
}


def test_the_transition_time_changes_with_the_status_only() -> None:
    first = with_condition([], "Drift", {"status": "True", "reason": "A", "message": "a"}, EARLY)
    worded = with_condition(first, "Drift", {"status": "True", "reason": "B", "message": "b"}, LATE)
    healed = with_condition(worded, "Drift", {"status": "False", "reason": "C", "message": ""}, LATE)

    assert [each[0]["lastTransitionTime"][:10] for each in (first, worded, healed)] == [
        "2026-01-01",
        "2026-01-01",
        "2026-01-02",
    ]
    assert worded[0]["reason"] == "B"


def test_conditions_of_others_stay() -> None:
    others = [{"type": "Ready", "status": "True"}]

    assert with_condition(others, "Drift", None, LATE) == others
    assert condition_in({"conditions": others}, "Drift") is None
    assert condition_in({"conditions": "broken"}, "Drift") is None


def test_the_same_change_has_the_same_event_and_the_next_change_another() -> None:
    first = event(ABOUT, "Warning", "Drifted", "it differs", "", EARLY)
    changed = {**ABOUT, "metadata": {**ABOUT["metadata"], "resourceVersion": "8"}}
    again = event(changed, "Warning", "Drifted", "it differs", "", LATE)
    later = event(ABOUT, "Warning", "Drifted", "it differs", "2026-01-01T00:00:00Z", LATE)

    assert first["metadata"]["name"] == again["metadata"]["name"] != later["metadata"]["name"]
    assert first["metadata"]["namespace"] == "default"
    assert len(event(ABOUT, "Normal", "R", "x" * 5000, "", EARLY)["message"]) == 1024
