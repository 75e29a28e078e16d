"""Where a cluster comes from: bytes of a file or of `kubectl` in, one `Snapshot` out.

A reader never leaves a wrong input half read: it raises `SpecErrors` with every fault it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coterie.errors import Fault, Notice
from coterie.topology.cluster import Cluster, Member
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class GangPod:
    """A pod that names a PodGroup, on whatever node and in whatever phase; empty where it says nothing."""

    namespace: str
    name: str
    pod_group: str
    subgroup: str = ""
    member: Member | None = None
    attempt: str = ""
    node: str = ""
    phase: str = ""
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment, the levels that its source itself names, and what the user should know about it.

    `objects` are those in it that declare levels, as they stand there; `topologies` are the levels of those among them
    that are ClusterTopologies and right, by name, and `wrong_topologies` are the faults of the others.
    `pod_groups` are KAI's PodGroups as they stand there, None where the source has none to give, and `gang_pods` are
    all pods that name one. `devices` are the ComputeDomains and claim templates in it, as they stand there.
    """

    cluster: Cluster
    topology: Topology | None = None
    notices: tuple[Notice, ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()
    topologies: Mapping[str, Topology] = field(default_factory=lambda: MappingProxyType({}))
    wrong_topologies: Mapping[str, tuple[Fault, ...]] = field(default_factory=lambda: MappingProxyType({}))
    pod_groups: tuple[Mapping[str, Any], ...] | None = None
    gang_pods: tuple[GangPod, ...] = ()
    devices: tuple[Mapping[str, Any], ...] = ()
