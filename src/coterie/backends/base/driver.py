"""Drivers: the actions a service requests of a backend while workflows run there, and the observations it gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from coterie.lifecycle import Create, Delete, Go, Observation, Spec, State, Stop


class TaskAttempt(NamedTuple):
    """One attempt of one task."""

    workflow: str
    group: str
    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TaskPlacement:
    """The node of one task, its domains by level, and its GPUs of the node."""

    node: str
    domains: Mapping[str, str] = field(default_factory=dict)
    gpus: Sequence[int] = ()


# The kind of the event that a task has a node and waits for its image, of which nothing in its life cycle tells.
IMAGE_MISSING = "ImageMissing"


@dataclass(frozen=True, slots=True)
class BackendEvent:
    """An event that users of a workflow should know of, and that changes nothing in its life cycle."""

    kind: str
    message: str
    group: str = ""
    task: str = ""
    attempt: int = 0


# What a driver reports about a workflow.
News = Observation | BackendEvent


class DrivenWorkflow(Protocol):
    """The part of a workflow that drivers use."""

    @property
    def id(self) -> str:
        """The unique id of the workflow."""

    @property
    def pool(self) -> str:
        """The name of its pool."""

    @property
    def owner(self) -> str:
        """The user whom it belongs to."""

    @property
    def spec(self) -> Spec:
        """The spec of its life cycle."""

    @property
    def state(self) -> State:
        """Its last saved state."""


class WorkflowTexts(Protocol):
    """The texts of workflows."""

    def get(self, workflow: str) -> tuple[Any, Mapping[str, bytes]]:
        """Return a workflow as its front end reads it, and the files that came with it."""


class OutputReader(Protocol):
    """The output of tasks, open to every replica, whether it leads or not."""

    def log(self, attempt: TaskAttempt, start: int, size: int | None = None) -> bytes:
        """Return a part of a log; a negative `start` counts from its end, and without a size it is the rest."""

    def log_offset(self, attempt: TaskAttempt, since: float) -> int | None:
        """Return the offset of a log at a time; None where nothing was written since."""

    def folder(self, attempt: TaskAttempt) -> str | None:
        """Return the folder into which an attempt writes files for others; None where there is none."""


class Driver(Protocol):
    """The driver of one backend for a service.

    Every request is idempotent. Any method may raise `Unavailable`, and is then called again later; earlier
    observations are not lost. All but `wait` are called by one thread.
    """

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to."""

    @property
    def problems(self) -> Sequence[str]:
        """The faults at this moment that an admin has to know of, as sentences; the driver goes on with all else."""

    def sync(self, pools: Collection[Any]) -> None:
        """Reconcile the scheduler's objects for the backend's pools with their current configuration."""

    def create(
        self, workflow: DrivenWorkflow, asked: Create, seats: Mapping[str, TaskPlacement]
    ) -> Iterable[Observation]:
        """Create tasks with the objects of their group; return the observations that are known at once."""

    def go(self, workflow: DrivenWorkflow, asked: Go) -> Iterable[Observation]:
        """Start the command of a task that is up."""

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        """Request the end of one task; `news` reports when nothing of it is left."""

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        """Request the end of all tasks of a group, and delete its objects; `news` reports when none is left."""

    def adopt(self, workflow: DrivenWorkflow) -> None:
        """Follow the tasks of a workflow, including those that were created before a restart."""

    def release(self, workflow: str) -> None:
        """Stop following the tasks of a workflow; they keep running."""

    def news(self) -> Iterator[tuple[str, News]]:
        """Yield the observations of tasks since the last call, and events, by workflow.

        All observations are yielded before `Unavailable` is raised, for what keeps the driver from working. Any other
        fault is one of `problems`.
        """

    def wait(self, timeout_s: float) -> bool:
        """Block until there may be observations, or for the timeout; return whether there may. Has its own thread."""

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        """End running tasks that no state knows, as a former leader may have left them."""

    def archive(self, workflow: str) -> None:
        """Archive an ended workflow: keep only what its users may still request."""

    def unarchived(self) -> set[str]:
        """Return the workflows with remains that are not archived."""

    def archived(self) -> set[str]:
        """Return the archived workflows."""

    def forget(self, workflow: str) -> None:
        """End and remove all remains of a workflow."""

    def close(self) -> None:
        """Release all resources of this process; tasks keep running. No other method is called after this."""


def attempts_of(workflow: DrivenWorkflow, group: str, first: int, last: int) -> Sequence[tuple[str, int]]:
    """Return tasks of a group with their attempt numbers, within bounds, that may ever have been created."""
    found = workflow.state.groups[workflow.spec.order[group]]
    return [
        (task.name, number)
        for task in found.tasks
        for number in dict.fromkeys((*(past.attempt for past in task.past), task.attempt))
        if number and first <= number <= last
    ]
