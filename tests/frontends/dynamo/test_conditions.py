"""The topology condition of a graph deployment; G67 to G69 are numbers of the facts' cases."""

from __future__ import annotations

import pytest

from coterie.frontends.dynamo.conditions import DynamoCondition, levels_available

MISSING = "ClusterTopologyNotFound"


@pytest.mark.parametrize(
    ("grove", "expected"),
    [
        pytest.param(None, DynamoCondition("Unknown", "TopologyConditionPending"), id="G67"),
        pytest.param(
            DynamoCondition("True", MISSING), DynamoCondition("False", "TopologyDefinitionNotFound"), id="G68"
        ),
        pytest.param(
            DynamoCondition("Unknown", MISSING),
            DynamoCondition("Unknown", "TopologyDefinitionNotFound"),
            id="G69 strict",
        ),
        (
            DynamoCondition("True", "ClusterTopologyLevelsUnavailable"),
            DynamoCondition("False", "TopologyLevelsUnavailable"),
        ),
        (
            DynamoCondition("False", "AllClusterTopologyLevelsAvailable"),
            DynamoCondition("True", "AllTopologyLevelsAvailable"),
        ),
        (DynamoCondition("Unknown", "TopologyNameMissing"), DynamoCondition("Unknown", "TopologyConditionPending")),
        (
            DynamoCondition("Unknown", "TopologyAwareSchedulingDisabled"),
            DynamoCondition("Unknown", "TopologyConditionPending"),
        ),
    ],
)
def test_the_condition_of_a_graph_follows_groves_with_the_sign_turned(
    grove: DynamoCondition | None, expected: DynamoCondition
) -> None:
    assert levels_available(grove) == expected
