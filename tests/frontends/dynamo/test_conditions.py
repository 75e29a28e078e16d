"""The topology condition of a graph deployment; G67 to G69 are numbers of the facts' cases."""

from __future__ import annotations

import pytest

from coterie.frontends.dynamo.conditions import Condition, levels_available, warning_event

MISSING = "ClusterTopologyNotFound"


@pytest.mark.parametrize(
    ("grove", "expected"),
    [
        pytest.param(None, Condition("Unknown", "TopologyConditionPending"), id="G67"),
        pytest.param(Condition("True", MISSING), Condition("False", "TopologyDefinitionNotFound"), id="G68"),
        pytest.param(
            Condition("Unknown", MISSING), Condition("Unknown", "TopologyDefinitionNotFound"), id="G69 strict"
        ),
        (Condition("True", "ClusterTopologyLevelsUnavailable"), Condition("False", "TopologyLevelsUnavailable")),
        (Condition("False", "AllClusterTopologyLevelsAvailable"), Condition("True", "AllTopologyLevelsAvailable")),
        (Condition("Unknown", "TopologyNameMissing"), Condition("Unknown", "TopologyConditionPending")),
        (Condition("Unknown", "TopologyAwareSchedulingDisabled"), Condition("Unknown", "TopologyConditionPending")),
    ],
)
def test_the_condition_of_a_graph_follows_groves_with_the_sign_turned(
    grove: Condition | None, expected: Condition
) -> None:
    assert levels_available(grove) == expected


@pytest.mark.parametrize("reason", [MISSING, "TopologyNameMissing"], ids=["G69 Dynamo", "no name"])
def test_dynamo_itself_takes_unknown_for_available(reason: str) -> None:
    found = levels_available(Condition("Unknown", reason), trusting=True)
    assert found == Condition("True", "AllTopologyLevelsAvailable")


def test_g68_a_warning_is_given_on_entering_false_and_on_a_new_reason_only() -> None:
    gone = levels_available(Condition("True", MISSING))
    less = levels_available(Condition("True", "ClusterTopologyLevelsUnavailable"))
    good = levels_available(Condition("False", "AllClusterTopologyLevelsAvailable"))
    assert warning_event(None, gone) == "TopologyDefinitionNotFound"
    assert warning_event(good, gone) == "TopologyDefinitionNotFound"
    assert warning_event(gone, less) == "TopologyLevelsUnavailable"
    assert warning_event(gone, gone) is None
    assert warning_event(gone, good) is None
