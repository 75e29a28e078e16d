"""The schema of a configuration file (`coterie.yaml`); `coterie explain` shows its descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from coterie.backends.base.account_ids import HINT, account_fault
from coterie.backends.base.registry import MODULES
from coterie.config.pod_template import PodTemplateModel
from coterie.document.quantities import Count, Duration, count
from coterie.document.schema import DocumentModel, Many, Text, TypeName, Wrong, rule, said, wrong
from coterie.topology.levels import label_fault

if TYPE_CHECKING:
    Scheduler = str
else:
    Scheduler = Literal[tuple(MODULES)]

# The setting of a pool that gives a ComputeDomain to every group with GPUs.
ALWAYS = "always"
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def dns_label(value: str) -> Iterator[Wrong]:
    """Check a name that becomes part of the names of Kubernetes objects."""
    if not _DNS_LABEL.fullmatch(value):
        yield Wrong(
            f"the name {said(value)} is not allowed",
            'Use 1 to 63 lower-case letters, digits and "-", beginning and ending with a letter or digit.',
        )


def _dns_name(value: str) -> Iterator[Wrong]:
    if not _DNS_NAME.fullmatch(value):
        yield Wrong(f"{{field}} {said(value)} is not a name", 'Use lower-case letters, digits, "-" and ".".')


def _folder(value: str) -> Iterator[Wrong]:
    if not all(_FOLDER.fullmatch(part) for part in value.split("/")):
        yield Wrong(f"{{field}} {said(value)} is not a folder of the volume", "Example: teams/research")


def _accounts(value: str) -> Iterator[Wrong]:
    if why := account_fault(value):
        yield Wrong(f"{{field}} {said(value)} {why}", HINT)


def _selector(found: dict[str, str]) -> Iterator[Wrong]:
    for key in found:
        if problem := label_fault(key):
            yield Wrong(
                f"{said(key)} is not a label: {problem}", "Example: nvidia.com/gpu.product: NVIDIA-GB200", (key,)
            )


def _level(value: object) -> object:
    if isinstance(value, str):
        raise wrong(
            Wrong(f"{{field}} must have a key and a label, not just {said(value)}", "Write {key: rack, label: LABEL}.")
        )
    return value


def _nvlink(value: object) -> object:
    if not isinstance(value, bool) and value != ALWAYS:
        hint = f"Write true or false without quotes, or {ALWAYS} for a ComputeDomain for every group with GPUs."
        raise wrong(Wrong(f"{{field}} must be true or false, not {said(value)}", hint))
    return value


def _gpus(value: object) -> int | None:
    # OSMO writes -1 for no limit.
    return None if value is None or (value == -1 and not isinstance(value, bool)) else count(value)


Name = Annotated[str, rule(dns_label)]
Selector = Annotated[dict[str, Text], rule(_selector), TypeName("a mapping of node labels to values")]
Gpus = Annotated[int | None, BeforeValidator(_gpus), TypeName("a whole number, or -1 for none")]


class LevelModel(DocumentModel):
    """One level of a pool's topology."""

    key: str = Field(description="The short name of the level, which workflows use, such as rack.")
    label: str = Field(description="The node label whose values are the domains of the level.")


class PoolTolerationModel(DocumentModel):
    """A taint that tasks of the pool tolerate."""

    key: str = Field("", description="The key of the taint; without one, every taint is tolerated.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="Whether the taint's value must be equal.")
    value: Text = Field("", description="The value of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="The effect of the taint; without one, every effect."
    )


class PlatformModel(DocumentModel):
    """A kind of node in a pool, which a resource spec can request."""

    description: str = Field("", description="A description of the platform.")
    node_selector: Selector = Field(default_factory=dict, description="Labels that the platform's nodes have.")
    tolerations: Many[PoolTolerationModel] = Field((), description="Taints that tasks on the platform tolerate.")


class GpuQuotaModel(DocumentModel):
    """The GPU quota of a pool."""

    guarantee: Gpus = Field(None, description="GPUs that are guaranteed to the pool.")
    limit: Gpus = Field(None, description="The maximum number of GPUs that the pool uses.")
    weight: Count = Field(1, description="The pool's share of what is left over, relative to other pools.")


class BackendModel(DocumentModel):
    """A cluster and its scheduler."""

    scheduler: Scheduler = Field(description="What places the tasks: local (embedded), kai, or the cluster's default.")
    cluster: str | None = Field(None, description="A cluster file or other source of nodes.")
    context: str | None = Field(None, description="The kubeconfig context of the cluster.")
    namespace: Name | None = Field(None, description="The namespace in which tasks run.")
    task_accounts: Annotated[Text, rule(_accounts)] | None = Field(
        None, description="The user ids of local tasks: FIRST-LAST, one for each person, or one user."
    )


class WorkspaceModel(DocumentModel):
    """The volume on which the pods of a pool share files."""

    claim: Annotated[str, rule(_dns_name)] = Field(
        description="The PersistentVolumeClaim, in the namespace of the tasks."
    )
    folder: Annotated[str, rule(_folder)] = Field("coterie", description="The folder of the volume to use.")
    removal_image: str = Field(
        "",
        description="The image of pods that remove the folders of deleted workflows; by default that of a task, which "
        "only empties them.",
    )


class PoolModel(DocumentModel):
    """A target of submissions."""

    description: str = Field("", description="A description of the pool.")
    backend: str | None = Field(None, description="The backend of the pool; needed when there are several.")
    node_selector: Selector = Field(default_factory=dict, description="Labels that the pool's nodes have.")
    nvlink: Annotated[bool | Literal["always"], BeforeValidator(_nvlink), TypeName("true, false or always")] = Field(
        default=False,
        description="Whether groups get a ComputeDomain for multi-node NVLink; always: every group with GPUs.",
    )
    topology_keys: Annotated[Many[Annotated[LevelModel, BeforeValidator(_level)]], Field(min_length=1)] | None = Field(
        None, description="The levels of the pool's topology, from the coarsest to the finest."
    )
    topology: Annotated[str, rule(_dns_name)] | None = Field(
        None, description="The name of a ClusterTopology to use instead of topology_keys."
    )
    tolerations: Many[PoolTolerationModel] = Field((), description="Taints that the pool's tasks tolerate.")
    resource_tolerations: bool = Field(
        default=True, description="Whether tasks tolerate taints named after an extended resource they ask for."
    )
    platforms: dict[str, PlatformModel] = Field(default_factory=dict, description="Kinds of nodes by name.")
    gpus: GpuQuotaModel | None = Field(None, description="How many GPUs the pool may use.")
    pod_template: PodTemplateModel | None = Field(
        None, description="A partial pod that is merged into the pod of each task."
    )
    workspace: WorkspaceModel | None = Field(
        None, description="A volume for data that tasks pass on: {{output}} and {{input:N}}."
    )
    max_exec_timeout: Duration | None = Field(None, description="The longest time a group may run.")
    max_queue_timeout: Duration | None = Field(None, description="The longest time a group may wait to be placed.")
    rescue_after: Duration | None = Field(
        None, description="How long a scheduler may leave a gang that fits waiting before it is pinned to domains."
    )


class ConfigModel(DocumentModel):
    """A whole configuration file."""

    backends: Annotated[dict[Name, BackendModel], Field(min_length=1)] = Field(description="Backends by name.")
    pools: Annotated[dict[Name, PoolModel], Field(min_length=1)] = Field(description="Pools by name.")
