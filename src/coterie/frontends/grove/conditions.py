"""The conditions that Grove writes about topologies, with all their reasons; True is bad in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Status = Literal["True", "False", "Unknown"]

DRIFT = "SchedulerTopologyDrift"
LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"

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
    }
)


@dataclass(frozen=True, slots=True)
class GroveCondition:
    """A condition without the times of its transitions."""

    status: Status
    reason: str
    message: str
