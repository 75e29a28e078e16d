"""The conditions about topologies, with all their reasons.

True is bad in those of ClusterTopologies and PodCliqueSets, and good in that of graph deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Status = Literal["True", "False", "Unknown"]

DRIFT = "SchedulerTopologyDrift"
LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
LEVELS_AVAILABLE = "TopologyLevelsAvailable"

REASONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DRIFT: ("InSync", "Drift", "TopologyNotFound"),
        LEVELS_UNAVAILABLE: (
            "AllClusterTopologyLevelsAvailable",
            "ClusterTopologyLevelsUnavailable",
            "ClusterTopologyNotFound",
            "TopologyNameMissing",
            "TopologyAwareSchedulingDisabled",
        ),
        # A fourth reason has the name of the condition above, on whose page it is explained.
        LEVELS_AVAILABLE: ("AllTopologyLevelsAvailable", "TopologyDefinitionNotFound", "TopologyConditionPending"),
    }
)
# The events of changes that have a reason of their own; those of workloads have the reason of the condition.
EVENTS: Mapping[str, tuple[str, ...]] = MappingProxyType({DRIFT: ("TopologyDriftDetected", "TopologyInSync")})


@dataclass(frozen=True, slots=True)
class GroveCondition:
    """A condition without the times of its transitions."""

    status: Status
    reason: str
    message: str
