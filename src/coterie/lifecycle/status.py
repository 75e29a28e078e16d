"""The vocabulary of a workflow's life cycle: statuses as in OSMO, the presence of tasks, and the causes of losses."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """The current activity of a workflow, a group or a task, or its result.

    PENDING is for workflows only; SUBMITTING, PROCESSING, SCHEDULING, INITIALIZING, RESCHEDULED and FAILED_UPSTREAM are
    for groups and tasks. FAILED_SUBMISSION and FAILED_SERVER_ERROR are set by the service; no step leads to them.
    """

    PENDING = "PENDING"
    SUBMITTING = "SUBMITTING"
    WAITING = "WAITING"
    PROCESSING = "PROCESSING"
    SCHEDULING = "SCHEDULING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    RESCHEDULED = "RESCHEDULED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    FAILED_SUBMISSION = "FAILED_SUBMISSION"
    FAILED_SERVER_ERROR = "FAILED_SERVER_ERROR"
    FAILED_EXEC_TIMEOUT = "FAILED_EXEC_TIMEOUT"
    FAILED_QUEUE_TIMEOUT = "FAILED_QUEUE_TIMEOUT"
    FAILED_CANCELED = "FAILED_CANCELED"
    FAILED_BACKEND_ERROR = "FAILED_BACKEND_ERROR"
    FAILED_IMAGE_PULL = "FAILED_IMAGE_PULL"
    FAILED_EVICTED = "FAILED_EVICTED"
    FAILED_START_ERROR = "FAILED_START_ERROR"
    FAILED_START_TIMEOUT = "FAILED_START_TIMEOUT"
    FAILED_PREEMPTED = "FAILED_PREEMPTED"
    FAILED_UPSTREAM = "FAILED_UPSTREAM"

    @property
    def final(self) -> bool:
        """Whether the result is known; only a retry by a user changes it."""
        return self in _FINAL

    @property
    def failed(self) -> bool:
        """Whether the result is known and is a failure."""
        return self in _FAILED


_FAILED = frozenset(status for status in Status if status.value.startswith("FAILED"))
_FINAL = _FAILED | {Status.COMPLETED}


class Presence(StrEnum):
    """The capacity and objects that a task's latest attempt may have, in the order of their life cycle.

    A new attempt begins only from ABSENT, so two attempts of one task never exist at the same time.
    """

    ABSENT = "absent"
    QUEUED = "queued"  # in the queue, which may have found nodes without having reported them yet
    PLACED = "placed"  # capacity is held; objects may exist
    CREATED = "created"  # capacity is held; objects exist
    STOPPING = "stopping"  # the task alone is being removed; its group stays
    DELETING = "deleting"  # everything of the group is being removed
    RETURNING = "returning"  # no objects are left; the queue may still hold capacity, or the request itself


class Consequence(NamedTuple):
    """The consequence of a loss: the final status, whether the task is retried, and whether its node is excluded."""

    status: Status
    retried: bool
    avoids_node: bool


class LossCause(StrEnum):
    """The cause of a task's loss without an exit code of its own."""

    NODE_FAILED = "NodeFailed"
    PROCESS_LOST = "ProcessLost"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    IMAGE_PULL = "ImagePull"
    START_ERROR = "StartError"
    BACKEND_ERROR = "BackendError"

    @property
    def consequence(self) -> Consequence:
        """The consequence of this cause."""
        return _CONSEQUENCES[self]


# Only the user can correct an image or a command that cannot start, and a backend rejects the same object again.
_CONSEQUENCES = {
    LossCause.NODE_FAILED: Consequence(Status.FAILED_BACKEND_ERROR, retried=True, avoids_node=True),
    LossCause.PROCESS_LOST: Consequence(Status.FAILED_BACKEND_ERROR, retried=True, avoids_node=False),
    LossCause.EVICTED: Consequence(Status.FAILED_EVICTED, retried=True, avoids_node=False),
    LossCause.PREEMPTED: Consequence(Status.FAILED_PREEMPTED, retried=True, avoids_node=False),
    LossCause.IMAGE_PULL: Consequence(Status.FAILED_IMAGE_PULL, retried=False, avoids_node=False),
    LossCause.START_ERROR: Consequence(Status.FAILED_START_ERROR, retried=False, avoids_node=False),
    LossCause.BACKEND_ERROR: Consequence(Status.FAILED_BACKEND_ERROR, retried=False, avoids_node=False),
}
