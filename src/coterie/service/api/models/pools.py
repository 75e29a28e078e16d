"""Pools, their levels and their map in answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from coterie.service.api.models.base import ResponseBody


class Level(ResponseBody):
    """A level of a pool."""

    key: str
    label: str


class Quota(ResponseBody):
    """The GPU quota of a pool, and its existing GPUs."""

    guarantee: int | None
    limit: int | None = Field(description="Null means no limit.")
    weight: int
    used: int
    total: int
    free: int
    out_of_service: int = Field(description="Idle on nodes that take no work: neither used nor free.")


class Busy(ResponseBody):
    """The number of running and waiting workflows of a pool."""

    running: int
    waiting: int


class PoolWarning(ResponseBody):
    """A finding about a pool or the labels of its nodes."""

    code: str
    severity: str
    level: str | None
    message: str
    hint: str


class Pool(ResponseBody):
    """A pool with its levels and its usage."""

    name: str
    description: str
    backend: str
    scheduler: str
    managed: bool = Field(description="It is defined in the configuration file and can be changed only there.")
    version: int
    default: bool = Field(description="It is the only one.")
    nvlink: bool
    node_selector: dict[str, str]
    topology_keys: list[Level] = Field(description="The coarsest first.")
    topology: str | None = Field(description="The ClusterTopology that its levels come from.")
    gpus: Quota
    nodes: int
    counted: bool = Field(description="Its nodes are known here; otherwise they and their GPUs are 0.")
    unreachable: str | None = Field(
        description="Why its cluster cannot be reached, or `connecting` before the first try has ended; what is shown "
        "of its nodes, if anything, is out of date."
    )
    max_exec_timeout: int | None = Field(description="Seconds.")
    max_queue_timeout: int | None = Field(description="Seconds.")
    workflows: Busy
    document: dict[str, Any] = Field(description="The pool as it is written in a configuration.")
    warnings: list[PoolWarning] = Field(description="Empty in a list that was asked for without them.")


class Pools(ResponseBody):
    """All pools."""

    items: list[Pool]


class Affected(ResponseBody):
    """A group that requires a level which the pool lost."""

    workflow: str
    group: str
    level: str
    waits: bool = Field(description="It is not placed, and cannot be placed without the level.")


class Changed(ResponseBody):
    """A changed field of a pool; null where it has no value."""

    field: str
    old: Any
    new: Any


class Applied(ResponseBody):
    """The result of applying a pool."""

    pool: Pool
    changed: bool
    created: bool
    dry_run: bool
    lost_levels: list[str]
    affected: list[Affected]
    changes: list[Changed] = Field(description="The fields that the document changes.")


class LevelCount(Level):
    """A level and its counts; null where the pool's nodes are not known here."""

    domains: int | None
    nodes: int | None
    unlabelled: int | None


class Gpus(ResponseBody):
    """GPUs of a domain."""

    total: int
    used: int
    free: int
    out_of_service: int = Field(description="Idle on nodes that take no work: neither used nor free.")


class Domain(ResponseBody):
    """A domain; its name is the path from the coarsest level down."""

    path: list[str]
    level: str
    nodes: int
    gpus: Gpus


class TopologyDrift(ResponseBody):
    """The comparison of a scheduler's own topology with the ClusterTopology."""

    scheduler: str
    reference: str = Field(description="The name of the scheduler's topology.")
    in_sync: bool
    message: str = Field(description="The difference; empty where there is none.")


class Topology(ResponseBody):
    """The levels of a pool, with their domains."""

    pool: str
    name: str | None = Field(description="The topology that they come from.")
    drift: list[TopologyDrift] | None = Field(
        description="Null where the levels do not come from a ClusterTopology, or the cluster shows no other topology."
    )
    counted: bool = Field(description="The pool's nodes are known here, and counted.")
    levels: list[LevelCount]
    domains: list[Domain]


class Topologies(ResponseBody):
    """The levels of all pools."""

    items: list[Topology]


class TopologyLevel(ResponseBody):
    """A level of a topology."""

    domain: str
    key: str = Field(description="The node label of the level.")


class LevelUse(ResponseBody):
    """A level that a part of a user names."""

    field: str = Field(description="The group of a workflow, or the field of an object of the cluster.")
    level: str
    required: bool | None = Field(description="None for a router's transfers, which concern no placement.")
    label: str = Field(description="The node label, for a level that is named by it.")
    effect: str = Field(description="none, not-placed, not-preferred or not-routed.")


class TopologyUser(ResponseBody):
    """A user of a topology, with the worst effect of a change on it."""

    kind: str
    namespace: str
    name: str
    uses: list[LevelUse]
    effect: str


class TopologyChange(ResponseBody):
    """The difference between the levels of a topology and those that it would have."""

    removed: list[str]
    added: list[str]
    relabelled: list[str]
    reordered: bool
    deleted: bool


class TopologyUsers(ResponseBody):
    """The users of a pool's levels."""

    topology: str
    levels: list[TopologyLevel] | None
    faults: list[str] = Field(description="Why not all users are known, where that is so.")
    change: TopologyChange | None = Field(description="None where no other levels were given.")
    users: list[TopologyUser]


class HistoryPoint(ResponseBody):
    """The use of a pool in one step: means of GPUs and fragmentation, the most of what waited."""

    at: str = Field(description="The beginning of the step.")
    gpus: float
    used: float
    free: float = Field(description="GPUs that are neither used nor free are out of service.")
    waiting: int = Field(description="Workflows with a group that waits.")
    waiting_gpus: int = Field(description="All GPUs of these workflows.")
    longest_wait_s: float = Field(description="The longest wait up to then of a workflow that was waiting.")
    fragmentation: float | None = Field(
        description="The share of the best possible gang in one domain that did not fit, because the free GPUs were "
        "scattered; null where less than a node's GPUs were free."
    )


class PoolHistory(ResponseBody):
    """The use of a pool over the last hours; steps in which no service ran are missing."""

    pool: str
    step_s: int
    kept_s: int = Field(description="How far back samples are kept.")
    points: list[HistoryPoint] = Field(description="The oldest first.")
    now: HistoryPoint | None = Field(description="The use at this moment; null where the nodes are not known.")


class MapGpus(Gpus):
    """The GPUs of an area of the map."""

    out_of_service: int


class MapHolder(ResponseBody):
    """A holder of GPUs."""

    owner: str
    gpus: int


class MapNode(ResponseBody):
    """A node on the map."""

    name: str
    gpus: MapGpus
    holders: list[MapHolder]
    cordoned: bool
    ready: bool


class MapArea(ResponseBody):
    """The content of an area: its domains, and nodes outside all of them."""

    node_count: int
    gpus: MapGpus
    holders: list[MapHolder]
    domains: list[MapDomain]
    nodes: list[MapNode]


class MapDomain(MapArea):
    """A domain on the map."""

    level: str
    value: str
    path: list[str]


class MapLevel(ResponseBody):
    """A level of the map."""

    name: str
    label: str


class Map(MapArea):
    """All nodes of a pool by domain, with their holders."""

    version: int
    pool: str
    levels: list[MapLevel]
    guessed: bool
