"""The schema of a workflow file, version 2 of OSMO's grammar; `coterie explain` shows its descriptions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from coterie.document.quantities import Count, Cpus, Duration, Size
from coterie.document.schema import DocumentModel, Many, Text, TypeName, rule
from coterie.frontends.workflow import values

Name = Annotated[str, rule(values.name), TypeName("a name")]
Labels = Annotated[dict[str, Text], rule(values.labels)]
Environment = Annotated[dict[str, Text], rule(values.environment)]
ExitCodes = Annotated[Text, rule(values.exit_codes), TypeName("exit codes such as 0-10,16")]
Mount = Annotated[str, rule(values.mount), TypeName("a path such as /data or /data:/mnt")]


class TopologyRequirement(DocumentModel):
    """One entry of a topology list."""

    key: Text = Field(description="The level to share, one of the pool's topology keys such as rack.")
    group: Text = Field("default", description="Tasks with the same key and group land in the same domain.")
    requirement_type: Literal["required", "preferred"] = Field(
        "required",
        alias="requirementType",
        description="Whether the tasks must share the domain (required), or share it if possible (preferred).",
    )


class ResourceSpec(DocumentModel):
    """The resources of each task that names it."""

    cpu: Cpus = Field(0, description="Processors that one task needs.")
    gpu: Count = Field(0, description="GPUs that one task needs.")
    memory: Size = Field(0, description="Memory that one task needs.")
    storage: Size = Field(0, description="Local disk space that one task needs.")
    platform: str | None = Field(None, description="The platform of the pool whose nodes the task may use.")
    nodes_excluded: Many[str] = Field((), alias="nodesExcluded", description="Nodes that the task must not use.")
    topology: Many[TopologyRequirement] = Field((), description="Which domains the task shares with which other tasks.")


class TaskInput(DocumentModel):
    """An input of a task."""

    task: str | None = Field(None, description="A task of an earlier group whose output is read; its group runs first.")
    url: str | None = Field(None, description="An object-storage address to read from; Coterie does not download it.")
    regex: str | None = Field(None, description="Which files to take, as a regular expression.")


class TaskOutput(DocumentModel):
    """An output of a task."""

    url: str = Field(description="An object-storage address to write to; Coterie does not upload to it.")
    regex: str | None = Field(None, description="Which files to take, as a regular expression.")


class TaskFile(DocumentModel):
    """A file put into a task's container before it starts."""

    path: str = Field(
        description="Where the file is in the container: an absolute path outside /osmo, at most 32 folders deep."
    )
    contents: Text | None = Field(None, description="The text of the file.")
    localpath: str | None = Field(None, description="A file beside the workflow file whose contents are taken.")
    base64: bool = Field(default=False, description="Whether contents are Base64 and decoded before use.")


class ExitActions(DocumentModel):
    """The meanings of exit codes."""

    complete: ExitCodes | None = Field(None, alias="COMPLETE", description="Exit codes that count as success.")
    fail: ExitCodes | None = Field(None, alias="FAIL", description="Exit codes that fail the task.")
    reschedule: ExitCodes | None = Field(
        None, alias="RESCHEDULE", description="Exit codes after which the task runs again."
    )


class Checkpoint(DocumentModel):
    """A folder saved while a task runs."""

    path: str = Field(description="The folder to save.")
    url: str = Field(description="The object-storage address to save to.")
    frequency: Duration | None = Field(None, description="How often to save.")
    regex: str | None = Field(None, description="Which files to save, as a regular expression.")


class TaskSpec(DocumentModel):
    """One container of a group."""

    name: Name = Field(description="The task's name, unique in the workflow.")
    image: Annotated[str, Field(min_length=1)] = Field(description="The container image to run.")
    command: Annotated[Many[Text], Field(min_length=1)] = Field(description="The command to run, as a list.")
    args: Many[Text] = Field((), description="Arguments added to the command.")
    lead: bool = Field(
        default=False, description="Whether the task decides when its group is done; one task of a group does."
    )
    environment: Environment = Field(default_factory=dict, description="Environment variables of the task.")
    resource: str = Field("default", description="The resource spec, under resources, that says what the task needs.")
    inputs: Many[TaskInput] = Field((), description="What the task reads; an input from a task orders the groups.")
    outputs: Many[TaskOutput] = Field((), description="What the task writes to object storage.")
    files: Many[Annotated[TaskFile, rule(values.file)]] = Field((), description="Files put into the container.")
    exit_actions: Annotated[ExitActions, rule(values.exit_actions)] = Field(
        default_factory=ExitActions,
        alias="exitActions",
        description="What the task's exit codes mean.",
    )
    volume_mounts: Many[Mount] = Field(
        (), alias="volumeMounts", description="Paths of the node mounted into the container."
    )
    credentials: dict[str, Any] = Field(
        default_factory=dict, description="Secrets for the task; Coterie does not provide them."
    )
    checkpoint: Many[Checkpoint] = Field(
        (), description="Folders to save while the task runs; Coterie does not save them."
    )
    privileged: bool = Field(default=False, description="Whether the container is privileged; Coterie never grants it.")
    host_network: bool = Field(
        default=False,
        alias="hostNetwork",
        description="Whether the task uses the node's network; Coterie never grants it.",
    )
    download_type: str | None = Field(
        None, alias="downloadType", description="How inputs are downloaded; Coterie does not download them."
    )
    cache_size: Text | None = Field(None, alias="cacheSize", description="Disk cache for inputs; Coterie keeps none.")
    kpis: Any = Field(None, description="Metrics to collect; Coterie does not collect them.")
    backend: str | None = Field(None, description="A backend for this task alone; Coterie uses the pool's.")


class GroupSpec(DocumentModel):
    """Tasks that start together or not at all."""

    name: Name = Field(description="The group's name, unique in the workflow.")
    barrier: bool = Field(default=True, description="Whether tasks wait for one another before their commands start.")
    ignore_nonlead_status: bool = Field(
        default=True,
        alias="ignoreNonleadStatus",
        description="Whether only the lead task decides how the group ended.",
    )
    tasks: Annotated[Many[TaskSpec], Field(min_length=1)] = Field(description="The tasks of the group.")


class Timeout(DocumentModel):
    """The time limits of each group."""

    exec_timeout: Duration | None = Field(None, description="How long a group may run.")
    queue_timeout: Duration | None = Field(None, description="How long a group may wait to be placed.")


class WorkflowSpec(DocumentModel):
    """One workflow."""

    name: Name = Field(description="The workflow's name.")
    pool: str | None = Field(None, description="The pool to run in, unless --pool names one.")
    labels: Labels = Field(default_factory=dict, description="Up to 16 labels of your own.")
    timeout: Timeout = Field(default_factory=Timeout, description="Time limits of every group.")
    resources: dict[str, ResourceSpec] = Field(default_factory=dict, description="Resource specs by name.")
    groups: Many[GroupSpec] | None = Field(None, description="Groups of tasks; either this or tasks.")
    tasks: Many[TaskSpec] | None = Field(None, description="Tasks, each a group of its own; either this or groups.")
    backend: str | None = Field(None, description="A backend to run on; Coterie uses the pool's.")


class WorkflowFile(DocumentModel):
    """A whole workflow file."""

    version: Annotated[int, BeforeValidator(values.version), TypeName("the number 2")] = Field(
        2, description="The version of the grammar, always 2."
    )
    workflow: WorkflowSpec = Field(description="The workflow itself.")
    resources: dict[str, ResourceSpec] = Field(
        default_factory=dict, description="Resource specs by name, as if they were under workflow."
    )
    default_values: dict[str, Any] = Field(
        default_factory=dict,
        alias="default-values",
        description="Values of template variables unless --set gives others.",
    )
