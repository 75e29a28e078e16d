"""The records that the store accepts and returns: plain values, with times in seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LEADER = "leader"

Json = Any
Slot = tuple[str, str, int]  # group, task, attempt


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A new event; `workflow` may be empty where the event is written together with a workflow."""

    at: float
    kind: str
    message: str
    workflow: str = ""
    pool: str = ""
    group: str = ""
    task: str = ""
    attempt: int = 0
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event with its number in the order of all events."""

    seq: int
    at: float
    kind: str
    message: str
    workflow: str
    pool: str
    group: str
    task: str
    attempt: int
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PoolSample:
    """The use of a pool at a time: its GPUs, the workflows that wait, and the fragmentation of what is free.

    GPUs that are neither used nor free are out of service. `fragmentation` is None where nothing is free.
    """

    pool: str
    at: float
    gpus: int
    used: int
    free: int
    waiting: int
    waiting_gpus: int
    longest_wait_s: float
    fragmentation: float | None


@dataclass(frozen=True, slots=True)
class NewWorkflow:
    """A workflow to be stored.

    `client_key` is the submitter's own name for the request, one per owner: a repeated key finds the same workflow,
    provided that the `fingerprint` of the request is the same. `spec` and `state` are the life cycle's, as JSON.
    `digest` is a small value for lists, so that they need not read states. `pool_version` is the version of a stored
    pool that it was checked against; a pool of the configuration has none. `amendment` is what the user changed about
    the workflow with options, `rendered` its rendered text where it is a template.
    """

    name: str
    pool: str
    owner: str
    priority: str
    submitted_at: float
    status: str
    source: bytes
    file: str
    spec: Mapping[str, Json]
    state: Mapping[str, Json]
    labels: Mapping[str, str] = field(default_factory=dict)
    sets: Sequence[str] = ()
    set_strings: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    client_key: str | None = None
    fingerprint: str = ""
    digest: Mapping[str, Json] = field(default_factory=dict)
    notices: Sequence[Json] = ()
    events: Sequence[NewEvent] = ()
    pool_version: int | None = None
    amendment: Mapping[str, Json] | None = None
    rendered: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The fields of a workflow that lists show; `number` orders all workflows by when they were stored."""

    number: int
    id: str
    name: str
    pool: str
    owner: str
    priority: str
    labels: Mapping[str, str]
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    status: str
    finished: bool
    version: int
    digest: Mapping[str, Json]
    notices: Sequence[Json]


@dataclass(frozen=True, slots=True)
class WorkflowRecord(Summary):
    """A workflow with its spec and its state, as the life cycle wrote them; a state in parts has them as `parts`."""

    spec: Mapping[str, Json]
    state: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class QueuedWorkflow:
    """A workflow as its place in the queue needs it; `queued` are the entries of its groups, None where it has none."""

    id: str
    pool: str
    priority: str
    number: int
    queued: Sequence[Json] | None


@dataclass(frozen=True, slots=True)
class Upload:
    """The user's submission: the text, its options, and the files that it names, by path."""

    source: bytes
    file: str
    sets: tuple[str, ...]
    set_strings: tuple[str, ...]
    files: Mapping[str, bytes]
    amendment: Mapping[str, Json] | None = None
    rendered: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class WorkflowQuery:
    """The filter of a list of workflows; all given conditions must hold.

    Of several statuses, pools or owners any one matches. An empty label value matches every value of the key.
    """

    statuses: Sequence[str] = ()
    pools: Sequence[str] = ()
    owners: Sequence[str] = ()
    name_prefix: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    submitted_after: float | None = None
    submitted_before: float | None = None
    finished: bool | None = None


EVERYTHING = WorkflowQuery()


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """A page of a list, newest first; `next` requests the following page, None at the end."""

    items: tuple[Summary, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """The node of a task's attempt; `held` becomes false when the capacity is returned, and the record stays."""

    group: str
    task: str
    attempt: int
    node: str
    gpus: tuple[int, ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    held: bool = True


@dataclass(frozen=True, slots=True)
class PartRecord:
    """A part of a state by its number, and the entries of those of its groups that are in the queue."""

    number: int
    data: Sequence[Json]
    queued: Sequence[Json] = ()


@dataclass(frozen=True, slots=True)
class WorkflowChange:
    """The next state of a workflow that was read at `version`, and all its rows.

    A state in parts has their number as `parts`, and `parts` are those that changed. `requests` are the numbers of the
    user requests that the state answers; they are deleted together with its commit.
    """

    id: str
    version: int
    status: str
    state: Mapping[str, Json]
    started_at: float | None = None
    ended_at: float | None = None
    finished: bool = False
    digest: Mapping[str, Json] = field(default_factory=dict)
    parts: Sequence[PartRecord] = ()
    events: Sequence[NewEvent] = ()
    placed: Sequence[PlacementRecord] = ()
    released: Sequence[Slot] = ()
    requests: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A user's request concerning a workflow; the leader turns it into an observation."""

    seq: int
    workflow: str
    observation: Mapping[str, Json]
    at: float


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool as an admin wrote it; `version` grows with each change."""

    name: str
    spec: Mapping[str, Json]
    version: int
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Token:
    """An API token; only the hash of its secret is stored."""

    id: str
    name: str
    hash: str
    role: str
    owner: str
    created_at: float
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to drive workflows; each holder has a higher `fence` than all before."""

    name: str
    holder: str
    fence: int
    expires_at: float
