"""The topology condition of a graph deployment, derived from Grove's condition of its PodCliqueSet.

Grove's condition is `TopologyLevelsUnavailable`, where True is bad; that of a graph deployment is
`TopologyLevelsAvailable`, where True is good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ALL_AVAILABLE = "AllTopologyLevelsAvailable"
UNAVAILABLE = "TopologyLevelsUnavailable"
NOT_FOUND = "TopologyDefinitionNotFound"
PENDING = "TopologyConditionPending"

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class DynamoCondition:
    """The status, reason and message of a Kubernetes condition."""

    status: Status
    reason: str


def levels_available(grove: DynamoCondition | None) -> DynamoCondition:
    """Return the condition of a graph deployment for that of its PodCliqueSet, None where Grove has set none yet.

    An unknown status stays unknown, although Dynamo's own operator reports it as available.
    """
    if grove is None:
        return DynamoCondition("Unknown", PENDING)
    if grove.status == "False":
        return DynamoCondition("True", ALL_AVAILABLE)
    missing = grove.reason == "ClusterTopologyNotFound"
    if grove.status == "True":
        return DynamoCondition("False", NOT_FOUND if missing else UNAVAILABLE)
    return DynamoCondition("Unknown", NOT_FOUND if missing else PENDING)
