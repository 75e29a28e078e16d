"""The schema of a pool's `pod_template`: the part of a pod that the pool gives to each of its tasks.

It has the fields of a Kubernetes pod template whose values Coterie neither sets nor has to know for its plans. The
others are refused with the place where they belong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from coterie.document.schema import DocumentModel, Many, Text, TypeName, Wrong, named_fields, rule, said
from coterie.gang.tree import Toleration
from coterie.topology.cluster import CPU, MEMORY, STORAGE
from coterie.topology.levels import label_fault
from coterie.topology.pod_requests import Amounts, asked, pod_requests
from coterie.topology.quantity import amount

# The container of the task.
TASK_CONTAINER = "task"
# Names of containers with this prefix, and of volumes of this form, are Coterie's own.
RESERVED_PREFIX = "coterie-"
_OWN_VOLUMES = re.compile(r"files|binary-files|output|workspace|(input|node)-\d+|coterie-.*")
_OWN_LABELS = ("coterie.dev", "kai.scheduler", "runai")
# KAI takes the GPUs of a pod from these annotations, if it has them.
_SHARED_GPUS = frozenset({"gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"})
_OWN_NAMES = frozenset({"pod-group-name", "app.kubernetes.io/managed-by"})
_COUNTED = (CPU, MEMORY, STORAGE)

Fields = Annotated[dict[str, Any], TypeName("a mapping, as Kubernetes defines it")]


def _labels(found: Mapping[str, str]) -> Iterator[Wrong]:
    for key in found:
        prefix = key.rpartition("/")[0]
        if key in _OWN_NAMES or any(prefix == own or prefix.endswith(f".{own}") for own in _OWN_LABELS):
            yield Wrong(f"{said(key)} is set by Coterie", "Remove it, or choose another name.", (key,))
        elif key in _SHARED_GPUS:
            hint = "Remove it: a task gets the whole GPUs that its workflow asks for."
            yield Wrong(f"{said(key)} requests a fraction of a GPU, which plans do not support", hint, (key,))
        elif problem := label_fault(key):
            yield Wrong(f"{said(key)} is not allowed: {problem}", "Example: example.com/team: research", (key,))


def _named(found: Sequence[Mapping[str, Any]]) -> Iterator[Wrong]:
    """Check a list whose entries are known by their names."""
    names: set[str] = set()
    for index, entry in enumerate(found):
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            yield Wrong(
                f"entry {index} of {{field}} has no name", "Kubernetes identifies entries by their names.", (index,)
            )
        elif name in names:
            yield Wrong(f"{{field}} has {said(name)} twice", "Keep one of the two.", (index, "name"))
        else:
            names.add(name)


def _volumes(found: Sequence[Mapping[str, Any]]) -> Iterator[Wrong]:
    yield from _named(found)
    for index, entry in enumerate(found):
        if _OWN_VOLUMES.fullmatch(str(entry.get("name", ""))):
            message = f"a volume must not be called {said(entry['name'])}, as one of Coterie's own is"
            yield Wrong(message, "Choose another name.", (index, "name"))


def _variables(found: Sequence[Mapping[str, Any]]) -> Iterator[Wrong]:
    yield from _named(found)
    for index, entry in enumerate(found):
        value = entry.get("value", "")
        if not isinstance(value, str):
            hint = f'Put it in quotes: "{said(value)}"'
            yield Wrong(f"value must be text, not {said(value)}", hint, (index, "value"))
        if str(entry.get("name", "")).startswith("COTERIE_"):
            hint = 'Variables that begin with "COTERIE_" are set by Coterie; choose another name.'
            yield Wrong(f"{said(entry['name'])} cannot be set here", hint, (index, "name"))


def _requests(found: Mapping[str, Any]) -> Iterator[Wrong]:
    for kind, quantities in found.items():
        if kind not in ("requests", "limits") or not isinstance(quantities, dict):
            hint = "Allowed are requests and limits, each a mapping of resources to quantities."
            yield Wrong(f"{said(kind)} is not allowed in {{field}}", hint, (kind,))
            continue
        for name, value in quantities.items():
            if name not in _COUNTED:
                hint = f"A sidecar may take {', '.join(_COUNTED)}."
                yield Wrong(f"a sidecar must not take {said(name)}", hint, (kind, name))
                continue
            try:
                amount(name, value)
            except (ValueError, TypeError) as error:
                yield Wrong(f"{name}: {error}", 'Example: 4, "500m" or 16Gi.', (kind, name))


def _containers(found: Sequence[TaskContainerModel]) -> Iterator[Wrong]:
    for index, entry in enumerate(found):
        if entry.name != TASK_CONTAINER:
            hint = (
                "Write a sidecar under initContainers with restartPolicy: Always: Kubernetes then ends it when the "
                "task has ended."
            )
            yield Wrong(f'a container must be called "{TASK_CONTAINER}", not {said(entry.name)}', hint, (index, "name"))
        elif index:
            yield Wrong(f'{{field}} has "{TASK_CONTAINER}" twice', "Keep one of the two.", (index, "name"))


def _init_containers(found: Sequence[InitContainerModel]) -> Iterator[Wrong]:
    names: set[str] = set()
    for index, entry in enumerate(found):
        if entry.name in names or entry.name == TASK_CONTAINER or entry.name.startswith(RESERVED_PREFIX):
            hint = "Choose a name that no other container of the pod has."
            yield Wrong(f"the name {said(entry.name)} is taken", hint, (index, "name"))
        names.add(entry.name)
        if entry.resources and entry.restart_policy is None:
            hint = "Remove it: such a container ends before the task starts, and uses what the task requested."
            yield Wrong("resources are counted for sidecars (restartPolicy: Always) only", hint, (index, "resources"))
        for number, port in enumerate(entry.ports):
            if "hostPort" in port:
                hint = "Two tasks on one node would need it at the same time; use containerPort alone."
                yield Wrong("a host port is not allowed", hint, (index, "ports", number, "hostPort"))


Labels = Annotated[dict[str, Text], rule(_labels), TypeName("a mapping of names to text")]
Named = Annotated[Many[Fields], rule(_named)]
Volumes = Annotated[Many[Fields], rule(_volumes)]
Variables = Annotated[Many[Fields], rule(_variables)]
Resources = Annotated[Fields, rule(_requests)]


class TemplateMetadataModel(DocumentModel):
    """Labels and annotations of pods."""

    labels: Labels = Field(default_factory=dict, description="Labels of each pod.")
    annotations: Labels = Field(default_factory=dict, description="Annotations of each pod.")


class _CommonContainerModel(DocumentModel):
    """The fields that every container of a template may have."""

    name: str = Field(description="The name of the container.")
    env: Variables = Field((), description="Environment variables.")
    env_from: Many[Fields] = Field((), alias="envFrom", description="ConfigMaps and Secrets as environment variables.")
    volume_mounts: Many[Fields] = Field((), alias="volumeMounts", description="Volumes and their paths.")
    volume_devices: Many[Fields] = Field((), alias="volumeDevices", description="Block devices and their paths.")
    security_context: Fields = Field(
        default_factory=dict, alias="securityContext", description="User, capabilities and other rights."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", alias="imagePullPolicy", description="When the image is pulled."
    )
    working_dir: str = Field("", alias="workingDir", description="The folder in which the command starts.")
    lifecycle: Fields = Field(default_factory=dict, description="Commands to run after it starts and before it ends.")


class TaskContainerModel(_CommonContainerModel):
    """Defaults of the task's container, which is called task."""


class InitContainerModel(_CommonContainerModel):
    """A container that runs before the task, or beside it (restartPolicy: Always)."""

    image: str = Field(description="The image of the container.")
    restart_policy: Literal["Always"] | None = Field(
        None, alias="restartPolicy", description="Always: a sidecar, which runs beside the task until the task ends."
    )
    command: Many[Text] = Field((), description="The program to run.")
    args: Many[Text] = Field((), description="The arguments of the program.")
    ports: Many[Fields] = Field((), description="Ports of the container.")
    resources: Resources = Field(
        default_factory=dict, description="Requests and limits of a sidecar; plans count them."
    )
    liveness_probe: Fields = Field(default_factory=dict, alias="livenessProbe", description="When it is restarted.")
    readiness_probe: Fields = Field(default_factory=dict, alias="readinessProbe", description="When it is ready.")
    startup_probe: Fields = Field(default_factory=dict, alias="startupProbe", description="When it has started.")


class TemplateTolerationModel(DocumentModel):
    """A taint that pods tolerate; plans know it as they know the pool's."""

    key: str = Field("", description="The key of the taint; without one, every taint.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="Whether the taint's value must be equal.")
    value: Text = Field("", description="The value of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="The effect of the taint; without one, every effect."
    )
    seconds: int | None = Field(None, alias="tolerationSeconds", description="How long the taint is tolerated.")


class TemplateSpecModel(DocumentModel):
    """The part of a pod spec that a pool may give."""

    service_account: str = Field("", alias="serviceAccountName", description="The service account of the pods.")
    mount_token: bool = Field(
        default=False,
        alias="automountServiceAccountToken",
        description="Whether the token of the service account is mounted.",
    )
    pull_secrets: Named = Field((), alias="imagePullSecrets", description="Secrets to pull images with.")
    runtime_class: str = Field("", alias="runtimeClassName", description="The RuntimeClass of the pods.")
    security_context: Fields = Field(
        default_factory=dict, alias="securityContext", description="User, groups and other rights of the whole pod."
    )
    volumes: Volumes = Field((), description="Volumes, for the containers of the template to mount.")
    tolerations: Many[TemplateTolerationModel] = Field((), description="Taints that the pods tolerate.")
    containers: Annotated[Many[TaskContainerModel], rule(_containers)] = Field(
        (), description="Defaults of the task's container, which is called task."
    )
    init_containers: Annotated[Many[InitContainerModel], rule(_init_containers)] = Field(
        (),
        alias="initContainers",
        description="Containers that run before the task, and sidecars (restartPolicy: Always).",
    )
    dns_policy: str = Field("", alias="dnsPolicy", description="How host names are resolved.")
    dns_config: Fields = Field(default_factory=dict, alias="dnsConfig", description="DNS servers and search paths.")
    host_aliases: Many[Fields] = Field((), alias="hostAliases", description="Additional lines of /etc/hosts.")
    host_network: bool = Field(default=False, alias="hostNetwork", description="Whether pods use the node's network.")
    host_ipc: bool = Field(default=False, alias="hostIPC", description="Whether pods use the node's shared memory.")
    host_pid: bool = Field(default=False, alias="hostPID", description="Whether pods see the node's processes.")
    host_users: bool = Field(default=True, alias="hostUsers", description="Whether pods use the node's user namespace.")
    share_processes: bool = Field(
        default=False, alias="shareProcessNamespace", description="Whether containers of a pod see each other."
    )
    service_links: bool = Field(
        default=True, alias="enableServiceLinks", description="Whether Services appear as environment variables."
    )


class PodTemplateModel(DocumentModel):
    """The part of a pod that a pool gives to its tasks."""

    metadata: TemplateMetadataModel = Field(
        default_factory=TemplateMetadataModel, description="Labels and annotations of the pods."
    )
    spec: TemplateSpecModel = Field(default_factory=TemplateSpecModel, description="Fields of the pods' spec.")


_ELSEWHERE = {
    "nodeSelector": "It belongs to the pool itself, as node_selector, so that plans know it.",
    "affinity": "Use the pool's node_selector and topology_keys, so that plans know it.",
    "topologySpreadConstraints": "Workflows say how tasks are placed, with topology.",
    "nodeName": "The scheduler chooses the nodes.",
    "schedulerName": "It follows from the scheduler of the pool's backend.",
    "schedulingGates": "Coterie starts gangs itself.",
    "schedulingGroup": "Coterie writes the group of a gang itself.",
    "restartPolicy": "Retries are set in the workflow (exitActions).",
    "activeDeadlineSeconds": "Use max_exec_timeout of the pool.",
    "terminationGracePeriodSeconds": "The service sets the grace period.",
    "priority": "It follows from the priority of the workflow.",
    "priorityClassName": "It follows from the priority of the workflow.",
    "preemptionPolicy": "It follows from the priority of the workflow.",
    "hostname": "Coterie sets the host names of tasks.",
    "subdomain": "Coterie sets the host names of tasks.",
    "hostnameOverride": "Coterie sets the host names of tasks.",
    "setHostnameAsFQDN": "Coterie sets the host names of tasks.",
    "resourceClaims": "Claims are made by Coterie, for the ComputeDomain of a group (nvlink).",
    "overhead": "It follows from runtimeClassName.",
    "resources": "The workflow sets them.",
    "serviceAccount": "It is called serviceAccountName.",
    "ephemeralContainers": "They can only be added to a running pod.",
}
_TASKS_OWN = {
    "image": "The workflow names the image.",
    "command": "The workflow names the command.",
    "args": "The workflow names the arguments.",
    "resources": "The workflow sets them.",
    "ports": "Ports need no declaration.",
}


def advice(model: type[DocumentModel] | None, word: str) -> str:
    """Return the place for a field that a template cannot have; empty where none is known."""
    if model is TemplateSpecModel:
        return _ELSEWHERE.get(word, "")
    if model is TaskContainerModel:
        return _TASKS_OWN.get(word, "")
    if model is PodTemplateModel and (word in named_fields(TemplateSpecModel) or word in _ELSEWHERE):
        return _ELSEWHERE.get(word) or f"It belongs to spec: pod_template.spec.{word}."
    if model is PodTemplateModel and word in named_fields(TemplateMetadataModel):
        return f"It belongs to metadata: pod_template.metadata.{word}."
    return ""


def template_data(model: PodTemplateModel | None) -> dict[str, Any]:
    """Return a template as manifests write it: only what the user wrote."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True) if model is not None else {}


def template_tolerations(model: PodTemplateModel | None) -> tuple[Toleration, ...]:
    """Return the taints that the pods of a template tolerate for ever, by which plans choose nodes."""
    found = model.spec.tolerations if model is not None else ()
    return tuple(Toleration(each.key, each.operator, each.value, each.effect) for each in found)


def sidecar_requests(model: PodTemplateModel | None) -> tuple[tuple[str, int], ...]:
    """Return the resources that the sidecars of a template request on the node of each task."""
    found = model.spec.init_containers if model is not None else ()
    sidecars: list[tuple[Amounts, bool]] = [
        (asked(each.resources.get("requests"), each.resources.get("limits")), True) for each in found
    ]
    return tuple(sorted(pod_requests((), sidecars).items()))
