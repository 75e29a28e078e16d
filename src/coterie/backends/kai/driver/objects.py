"""The fields of objects in a cluster that the driver reads."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from coterie.kube.api import MANAGER
from coterie.sources.kubernetes_objects import OwnerReference
from coterie.sources.task_labels import ATTEMPT, GROUP, TASK, WORKFLOW


class FieldManager(msgspec.Struct, gc=False):
    """One manager of an object's fields."""

    manager: str = ""


class ObjectMeta(msgspec.Struct, gc=False, rename="camel"):
    """The identity of an object, its labels, its deletion, and who wrote it."""

    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None
    managed_fields: list[FieldManager] | None = None
    owner_references: list[OwnerReference] | None = None

    def label(self, key: str) -> str:
        """Return the value of a label, empty where it has none."""
        return (self.labels or {}).get(key, "")

    @property
    def workflow(self) -> str:
        """The label of the workflow that the object belongs to."""
        return self.label(WORKFLOW)

    @property
    def group(self) -> str:
        """The label of the group that the object belongs to."""
        return self.label(GROUP)

    @property
    def task(self) -> str:
        """The label of the task that the object belongs to, empty for objects of a whole group."""
        return self.label(TASK)

    @property
    def attempt(self) -> int:
        """The number of the placement that the object belongs to, 0 where it is not stated."""
        text = self.label(ATTEMPT)
        return int(text) if text.isascii() and text.isdigit() else 0

    @property
    def own(self) -> bool:
        """Whether Coterie wrote the object; a copy that somebody else applied has its labels, but not its manager."""
        return any(each.manager == MANAGER for each in self.managed_fields or ())


class AnyObject(msgspec.Struct, gc=False):
    """An object of any kind."""

    metadata: ObjectMeta


class WaitingState(msgspec.Struct, gc=False):
    """A container that has not started."""

    reason: str = ""
    message: str = ""


class RunningState(msgspec.Struct, gc=False, rename="camel"):
    """A container that runs."""

    started_at: str | None = None


class TerminatedState(msgspec.Struct, gc=False, rename="camel"):
    """A container that has ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(msgspec.Struct, gc=False):
    """The state of a container; at most one of the three is set."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(msgspec.Struct, gc=False):
    """The status of one container."""

    name: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PodCondition(msgspec.Struct, gc=False):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class TaskPodStatus(msgspec.Struct, gc=False, rename="camel"):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class TaskPodSpec(msgspec.Struct, gc=False, rename="camel"):
    """The node of a pod."""

    node_name: str = ""


class TaskPod(msgspec.Struct, gc=False):
    """The pod of a task."""

    metadata: ObjectMeta
    spec: TaskPodSpec = msgspec.field(default_factory=TaskPodSpec)
    status: TaskPodStatus = msgspec.field(default_factory=TaskPodStatus)


class SchedulingCondition(msgspec.Struct, gc=False):
    """KAI's reason why a PodGroup is not scheduled."""

    message: str = ""
    status: str = ""


class PodGroupStatus(msgspec.Struct, gc=False, rename="camel"):
    """The status of a PodGroup."""

    scheduling_conditions: list[SchedulingCondition] | None = None


class TopologyReference(msgspec.Struct, gc=False):
    """The topology of a constraint."""

    topology: str = ""


class SubGroup(msgspec.Struct, gc=False, rename="camel"):
    """A subgroup of a PodGroup; only one without subgroups of its own has a number of members."""

    name: str = ""
    parent: str | None = None
    min_member: int | None = None
    topology_constraint: TopologyReference | None = None


class PodGroupSpec(msgspec.Struct, gc=False, rename="camel"):
    """The queue and the topologies that a PodGroup refers to, and how many members it waits for."""

    queue: str = ""
    min_member: int | None = None
    topology_constraint: TopologyReference | None = None
    sub_groups: list[SubGroup] | None = None

    def topologies(self) -> set[str]:
        """Return the names of all topologies that its constraints refer to."""
        parts = [self.topology_constraint, *(each.topology_constraint for each in self.sub_groups or ())]
        return {part.topology for part in parts if part is not None}


class GangPodGroup(msgspec.Struct, gc=False):
    """The PodGroup of a group."""

    metadata: ObjectMeta
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


def seconds(text: str | None) -> float | None:
    """Return a time as the API writes it in seconds since 1970; None for none, or an unreadable one."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
