"""The sources of a cluster: a file, the output of `kubectl` or a live API, each read to one `Snapshot`.

A reader never returns a partly read input: it raises `SpecErrors` with every fault it found.
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
    """A pod that names a PodGroup, on any node and in any phase; fields without a value are empty."""

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
    """A cluster at one moment, the levels that its source declares, and notices for the user.

    `objects` are the unchanged objects that declare levels; `topologies` are the levels of the valid ClusterTopologies
    among them, by name, and `wrong_topologies` the faults of the others. `pod_groups` are KAI's unchanged PodGroups,
    None where the source cannot list them, and `gang_pods` are all pods that name one. `devices` are the unchanged
    ComputeDomains and claim templates.
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
