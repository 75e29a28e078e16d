"""The traits of a scheduler: everything that the rest of Coterie may depend on instead of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from coterie.backends.base.driver import Driver, OutputReader, WorkflowTexts
from coterie.backends.base.settings import DriverSettings
from coterie.backends.base.submission import SubmissionCheck
from coterie.backends.base.topology_resource import TopologyResource
from coterie.errors import Notice
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology


class RefusalKind(StrEnum):
    """The subject of a scheduler's own words about a gang that waits."""

    # Pods of the gang that do not exist.
    MEMBERS = "members"
    # The limit of a queue.
    QUOTA = "quota"
    # Claims that do not exist or are not reserved yet.
    CLAIMS = "claims"
    # Devices that the scheduler counts as taken.
    DEVICES = "devices"


class Forecast(Protocol):
    """A forecast, as warnings, of a scheduler's behaviour with the gangs of one plan."""

    def cluster_notices(self, cluster: Cluster, topology: Topology) -> Iterable[Notice]:
        """Yield what the scheduler misinterprets in a cluster, independent of its workload."""

    def add(self, gang: Gang, capacity: Capacity, running: Mapping[str, str]) -> None:
        """Add a gang that the engine has placed on this capacity; `running` has the nodes of tasks that stay."""

    def notices(self, together: Iterable[Sequence[str]] = ()) -> tuple[Notice, ...]:
        """Return all warnings; `together` has the names of jointly placed gangs, the last one last."""


@dataclass(frozen=True, slots=True)
class Traits:
    """One scheduler as the rest of Coterie sees it; an unknown one promises nothing.

    Functions import their modules when they are called, so that a query about a scheduler imports nothing of it.
    """

    scheduler: str
    # Its name in sentences.
    title: str
    # The `schedulerName` of pods that it places as gangs; empty where there is none.
    pod_scheduler: str = ""
    # Its only cluster is the machine that Coterie runs on, so it has neither a context nor a namespace.
    embedded: bool = False
    # Its clusters are Kubernetes', whose API tells which nodes and pods there are.
    kubernetes: bool = False
    # It chooses the nodes itself; otherwise Coterie's engine does.
    chooses_nodes: bool = False
    # It has its own queue, so that gangs do not wait in Coterie's.
    own_queue: bool = False
    # It places gangs by the levels of a topology.
    topology: bool = False
    # It does not see nodes that lack the label of any level, for gangs with constraints.
    hides_unlabelled: bool = False
    # It places tasks with claims on ComputeDomains.
    compute_domains: bool = False
    # The most tasks that can run at a time, from the process limit of a service.
    most_tasks: Callable[[int], int] | None = None
    # Its own resource with the levels of a topology, for levels that are declared in a cluster.
    topology_resource: Callable[[], TopologyResource] | None = None
    forecast: Callable[[], Forecast] | None = None
    # The code of the forecast's warning about a gang that fits and that the scheduler leaves waiting.
    forecast_code: str = ""
    # The subject of its words about a gang that waits, None for any other; for schedulers that give sentences alone.
    refusal_kind: Callable[[str], RefusalKind | None] | None = None
    # Checks of a workflow before it is accepted, beyond those of its pool.
    submission: Callable[[], SubmissionCheck[Any, Any]] | None = None
    driver: Callable[[DriverSettings, WorkflowTexts], Driver] | None = None
    output: Callable[[DriverSettings], OutputReader] | None = None

    @property
    def driven(self) -> bool:
        """Whether a service can run workflows on it."""
        return self.driver is not None
