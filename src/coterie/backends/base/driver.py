"""Drivers: what a service asks of a backend while it runs workflows there, and what it hears back."""

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
class Seat:
    """The node of one task, its domains by level, and which of its GPUs the task has."""

    node: str
    domains: Mapping[str, str] = field(default_factory=dict)
    gpus: Sequence[int] = ()


class DrivenWorkflow(Protocol):
    """A workflow as far as drivers know it."""

    @property
    def id(self) -> str:
        """Its name, which no other has."""

    @property
    def spec(self) -> Spec:
        """The rules of its life."""

    @property
    def state(self) -> State:
        """Its state as it was saved last."""


class Texts(Protocol):
    """The workflows as they were written."""

    def get(self, workflow: str) -> tuple[Any, Mapping[str, bytes]]:
        """Return a workflow as its front end reads it, and the files that came with it."""


class TaskOutput(Protocol):
    """Everything that tasks have written, open to every replica, whether it leads or not."""

    def log(self, attempt: TaskAttempt, start: int, size: int | None = None) -> bytes:
        """Return a piece of a log; a negative `start` counts from its end, and without a size it is the rest."""

    def log_offset(self, attempt: TaskAttempt, since: float) -> int | None:
        """Return where a log stood at a time; None where nothing was written since."""

    def folder(self, attempt: TaskAttempt) -> str | None:
        """Return where an attempt puts files for others to read; None where there is no such place."""


class Driver(Protocol):
    """The hands of a service on one backend.

    Everything asked for twice is done once. Any method may raise `Unavailable`, and is then asked again later; what was
    heard before is not lost. All but `wait` are called by one thread.
    """

    @property
    def running(self) -> int:
        """How many tasks run or are about to."""

    def sync(self, pools: Collection[Any]) -> None:
        """Bring what the scheduler knows of the backend's pools, as they are configured now, in step with them."""

    def create(self, workflow: DrivenWorkflow, asked: Create, seats: Mapping[str, Seat]) -> Iterable[Observation]:
        """Create tasks with the objects of their group; return what can be said of them at once."""

    def go(self, workflow: DrivenWorkflow, asked: Go) -> Iterable[Observation]:
        """Let a task that is up start its command."""

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        """Ask one task to end; `news` tells when nothing of it is left."""

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        """Ask all tasks of a group to end, and remove its objects; `news` tells when nothing of it is left."""

    def adopt(self, workflow: DrivenWorkflow) -> None:
        """Follow the tasks of a workflow, also those that were created before a restart."""

    def let_go(self, workflow: str) -> None:
        """Follow the tasks of a workflow no longer; they go on."""

    def news(self) -> Iterator[tuple[str, Observation]]:
        """Yield what became of tasks since this was asked last, by workflow.

        Whatever there is to tell is told before `Unavailable` is raised.
        """

    def wait(self, timeout_s: float) -> bool:
        """Block until there may be news, or so long; tell whether there may. One thread of its own calls this."""

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        """End what runs although no state knows of it, as a leader that lost its place may have left it."""

    def put_away(self, workflow: str) -> None:
        """Keep of a workflow that has ended only what its users may still ask for."""

    def left(self) -> set[str]:
        """Return the workflows of which there is anything that was not put away."""

    def kept(self) -> set[str]:
        """Return the workflows that were put away."""

    def forget(self, workflow: str) -> None:
        """End and remove all that is left of a workflow."""

    def close(self) -> None:
        """Release everything that this process holds; tasks go on. No other method is called after this."""


def attempts_of(state: State, group: str, first: int, last: int) -> Sequence[tuple[str, int]]:
    """Return tasks of a group with the numbers of those attempts, within bounds, that may ever have been created."""
    found = next(each for each in state.groups if each.name == group)
    return [
        (task.name, number)
        for task in found.tasks
        for number in dict.fromkeys((*(past.attempt for past in task.past), task.attempt))
        if number and first <= number <= last
    ]
