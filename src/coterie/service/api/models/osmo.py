"""Bodies in OSMO's shapes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coterie.lifecycle import Status
from coterie.service.api.models.base import ResponseBody
from coterie.service.api.models.pools import Level


class TemplateSpec(BaseModel):
    """A workflow as OSMO's client sends it."""

    model_config = ConfigDict(extra="ignore")

    file: str = Field(description="The workflow file as text.")
    set_variables: list[str] = Field(default_factory=list, description="KEY=VALUE.")
    set_string_variables: list[str] = Field(default_factory=list, description="The same, always as text.")


class Submitted(ResponseBody):
    """The answer to a submission."""

    name: str
    overview: str
    logs: str
    spec: str
    dashboard_url: str
    warnings: list[str]


class Row(ResponseBody):
    """A workflow in a list."""

    user: str
    name: str
    status: Status
    pool: str
    priority: str
    submit_time: str | None
    start_time: str | None
    end_time: str | None


class Rows(ResponseBody):
    """A page of workflows."""

    workflows: list[Row]
    more_entries: bool


class Task(ResponseBody):
    """A task."""

    name: str
    status: Status
    lead: bool
    retry_id: int
    node_name: str | None
    exit_code: int | None
    failure_message: str | None
    start_time: str | None
    end_time: str | None


class Group(ResponseBody):
    """A group of tasks."""

    name: str
    status: Status
    start_time: str | None
    end_time: str | None
    failure_message: str | None
    tasks: list[Task]


class Workflow(Row):
    """A workflow with its groups."""

    groups: list[Group]


class Cancelled(ResponseBody):
    """A workflow whose cancellation was requested."""

    name: str
    status: Status


class Usage(ResponseBody):
    """GPUs of a pool; OSMO writes numbers as text."""

    quota_used: str
    quota_limit: str
    quota_free: str
    total_usage: str
    total_capacity: str
    total_free: str


class Pool(ResponseBody):
    """A pool."""

    name: str
    description: str
    status: str
    backend: str
    topology_keys: list[Level]
    resource_usage: Usage


class NodeSet(ResponseBody):
    """Pools that share nodes."""

    pools: list[Pool]


class Pools(ResponseBody):
    """All pools."""

    node_sets: list[NodeSet]
    resource_sum: Usage


class ListedTask(ResponseBody):
    """A task in a list of all; cores, GPUs and GiB are its requests."""

    user: str
    workflow_id: str
    task_name: str
    retry_id: int
    pool: str
    node: str | None
    start_time: str | None
    end_time: str | None
    status: Status
    overview: str
    logs: str
    error_logs: str | None
    cpu: int
    gpu: int
    memory: int
    storage: int
    priority: str


class Tasks(ResponseBody):
    """Tasks of any workflows."""

    tasks: list[ListedTask]


class Resource(ResponseBody):
    """A node: whole cores, GPUs and GiB. A pool without platforms has an empty name after its slash."""

    hostname: str
    backend: str
    exposed_fields: dict[str, Any]
    pool_platform_labels: dict[str, list[str]]
    allocatable_fields: dict[str, int]
    usage_fields: dict[str, int]
    non_workflow_usage_fields: dict[str, int]
    label_fields: dict[str, str]
    taints: list[dict[str, str]]
    conditions: list[str]
    resource_type: Literal["UNUSED", "RESERVED", "SHARED"]


class Resources(ResponseBody):
    """Nodes."""

    resources: list[Resource]


class Version(ResponseBody):
    """The version of Coterie."""

    major: str
    minor: str
    revision: str
    hash: str


class Health(ResponseBody):
    """The process answers."""

    status: Literal["ok"]
