"""The driver of the embedded scheduler: tasks as processes of this machine, by the supervisor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coterie.backends.base.driver import DrivenWorkflow, TaskPlacement, WorkflowTexts, attempts_of
from coterie.backends.base.settings import DriverSettings
from coterie.backends.local import work_order as local
from coterie.backends.local.files.log_budget import LogBudget
from coterie.backends.local.group_orders import WorkflowRun, orders_for
from coterie.backends.local.machine.accounts import AccountTable
from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptKey
from coterie.errors import NotFound, SpecErrors, UsageError
from coterie.lifecycle import (
    Create,
    Created,
    Delete,
    Ended,
    Go,
    Gone,
    LossCause,
    Lost,
    Observation,
    Presence,
    Running,
    Stop,
    Stopped,
)

# The process's watcher also enforces the limits of the life cycle, a little later, in case there is no leader.
_BACKSTOP_S = 60.0
_ALIVE = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class _PendingEnd:
    """Attempts that must be gone before an action is confirmed."""

    workflow: str
    keys: tuple[AttemptKey, ...]
    confirms: Observation


class LocalDriver:
    """The driver of tasks as processes: their start, supervision and end."""

    def __init__(self, settings: DriverSettings, texts: WorkflowTexts) -> None:
        limits = ProcessLimits(processes=settings.processes)
        self._supervisor = Supervisor(settings.folder, limits, accounts=settings.accounts is not None)
        self._accounts = AccountTable(settings.folder, settings.accounts) if settings.accounts else None
        self._logs = LogBudget(settings.folder.resolve(), settings.all_log_bytes)
        self._settings = settings
        self._texts = texts
        self._watched: dict[AttemptKey, local.Status] = {}
        self._ending: dict[tuple[str, str], _PendingEnd] = {}

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to."""
        return len(self._watched)

    @property
    def problems(self) -> list[str]:
        """The reason why due tasks cannot start."""
        return [said] if (said := self._supervisor.problem) else []

    def sync(self, pools: Collection[Any]) -> None:
        """Do nothing: no scheduler besides Coterie has to know the pools."""

    def create(
        self, workflow: DrivenWorkflow, asked: Create, seats: Mapping[str, TaskPlacement]
    ) -> Iterator[Observation]:
        """Start tasks; those of a group with a barrier start together or not at all."""
        try:
            text, files = self._texts.get(workflow.id)
            account = self._accounts.of(workflow.owner) if self._accounts else None
            found = orders_for(text, asked.group, seats, self._run(workflow, asked, files))
            orders = [replace(order, account=account) for order in found]
            for batch in [orders] if asked.held else [(order,) for order in orders]:
                self._supervisor.start(batch)
        except (SpecErrors, UsageError, NotFound) as error:
            for task, _ in asked.tasks:
                yield Lost(task, asked.attempt, LossCause.BACKEND_ERROR, str(error))
            return
        for order in orders:
            self._watched.setdefault(order.key, local.AttemptStarting())
        yield Created(asked.group, asked.attempt)

    def go(self, workflow: DrivenWorkflow, asked: Go) -> Iterator[Observation]:  # noqa: ARG002 - the same for all
        """Confirm that a task runs: all tasks of a group with a barrier were started at once."""
        yield Running(asked.task, asked.attempt)

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        """Request the end of one task."""
        group = workflow.spec.groups[workflow.spec.places[asked.task][0]].name
        key = AttemptKey(workflow.id, group, asked.task, asked.attempt)
        self._end(workflow.id, asked.id, (key,), asked.grace_s, Stopped(asked.task, asked.attempt))

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        """Request the end of all tasks of a group."""
        found = attempts_of(workflow, asked.group, asked.attempt, asked.last)
        keys = tuple(AttemptKey(workflow.id, asked.group, task, attempt) for task, attempt in found)
        self._end(workflow.id, asked.id, keys, asked.grace_s, Gone(asked.group, asked.attempt))

    def adopt(self, workflow: DrivenWorkflow) -> None:
        """Follow the tasks of a workflow that was running before a restart."""
        for group in workflow.state.groups:
            for task in group.tasks:
                if task.presence in (Presence.CREATED, Presence.STOPPING, Presence.DELETING):
                    self._watched.setdefault(
                        AttemptKey(workflow.id, group.name, task.name, task.attempt), local.AttemptStarting()
                    )

    def release(self, workflow: str) -> None:
        """Stop following the tasks of a workflow; they keep running."""
        self._watched = {key: status for key, status in self._watched.items() if key.workflow != workflow}
        self._ending = {name: ending for name, ending in self._ending.items() if ending.workflow != workflow}

    def news(self) -> Iterator[tuple[str, Observation]]:
        """Yield the observations since the last call."""
        if not self._watched and not self._ending:
            return
        known = self._supervisor.statuses({*self._watched, *(key for end in self._ending.values() for key in end.keys)})
        for key, before in list(self._watched.items()):
            status = known.get(key, local.AttemptAbsent())
            if status == before:
                continue
            if _over(status):
                del self._watched[key]
            else:
                self._watched[key] = status
            if (told := _told(key, status)) is not None:
                yield key.workflow, told
        for name, ending in list(self._ending.items()):
            if all(_over(known.get(key, local.AttemptAbsent())) for key in ending.keys):
                del self._ending[name]
                yield ending.workflow, ending.confirms

    def wait(self, timeout_s: float) -> bool:
        """Block until a status changes, or for the timeout."""
        return self._supervisor.wait(timeout_s)

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        """End running tasks that no state knows, and make room for the logs of the others."""
        self._logs.check()
        for key, status in self._supervisor.statuses().items():
            if not _over(status) and key.workflow not in spared and not _expected(key, workflows.get(key.workflow)):
                self._supervisor.kill(key)

    def unarchived(self) -> set[str]:
        """Return the ids of workflows with folders that are not archived."""
        return {key.workflow for key in self._supervisor.statuses()}

    def archive(self, workflow: str) -> None:
        """Archive an ended workflow: keep its data only on the disk."""
        self._supervisor.archive(workflow)
        self._logs.add(workflow)

    def archived(self) -> set[str]:
        """Return the ids of archived workflows."""
        return self._supervisor.archived()

    def forget(self, workflow: str) -> None:
        """End and remove all remains of a workflow."""
        self._logs.drop(workflow)
        self._supervisor.remove(workflow)

    def close(self) -> None:
        """Release all processes; they keep running."""
        self._supervisor.close()

    def _end(
        self, workflow: str, name: str, keys: tuple[AttemptKey, ...], grace_s: float, confirms: Observation
    ) -> None:
        for key in keys:
            self._supervisor.stop(key, grace_s)
        self._ending[workflow, name] = _PendingEnd(workflow, keys, confirms)

    def _log_bytes(self, workflow: DrivenWorkflow) -> int:
        """Return the size of a task's log: all of a workflow share one budget."""
        share = self._settings.workflow_log_bytes // max(1, len(workflow.spec.places))
        return max(local.LEAST_LOG, min(self._settings.log_bytes, share))

    def _run(self, workflow: DrivenWorkflow, asked: Create, files: Mapping[str, bytes]) -> WorkflowRun:
        limit = workflow.spec.groups[workflow.spec.order[asked.group]].exec_timeout_s
        return WorkflowRun(
            workflow.id,
            local=files,
            sources=_Sources(workflow),
            attempts={task: asked.attempt for task, _ in asked.tasks},
            exec_timeout_s=None if limit is None else limit + _BACKSTOP_S,
            grace_s=workflow.spec.grace_s,
            log_bytes=self._log_bytes(workflow),
        )


class _Sources(Mapping[str, AttemptKey]):
    """The latest attempt of each task that has one, looked up when asked for: tasks are many, and few are read."""

    def __init__(self, workflow: DrivenWorkflow) -> None:
        self._workflow, self._state = workflow, workflow.state

    def __getitem__(self, name: str) -> AttemptKey:
        index, place = self._workflow.spec.places[name]
        group = self._state.groups[index]
        if not group.tasks[place].attempt:
            raise KeyError(name)
        return AttemptKey(self._workflow.id, group.name, name, group.tasks[place].attempt)

    def __iter__(self) -> Iterator[str]:
        return (task.name for group in self._state.groups for task in group.tasks if task.attempt)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _over(status: local.Status) -> bool:
    return isinstance(status, local.AttemptEnded | local.AttemptLost | local.AttemptAbsent)


def _told(key: AttemptKey, status: local.Status) -> Observation | None:
    match status:
        case local.AttemptRunning(_, since):
            return Running(key.task, key.attempt, at=since)
        case local.AttemptEnded(exit_code, at, "exited", note, since):
            return Ended(key.task, key.attempt, exit_code, note, since, at)
        case local.AttemptEnded(exit_code, at, "timeout", _, since):
            return Ended(key.task, key.attempt, exit_code, "stopped after its time limit", since, at)
        case local.AttemptEnded():
            return Lost(key.task, key.attempt, LossCause.PROCESS_LOST, "it was stopped by something other than Coterie")
        case local.AttemptLost(why):
            return Lost(key.task, key.attempt, LossCause.PROCESS_LOST, why)
        case local.AttemptAbsent():
            return Lost(key.task, key.attempt, LossCause.PROCESS_LOST, "it was not found after a restart")
    return None


def _expected(key: AttemptKey, workflow: DrivenWorkflow | None) -> bool:
    if workflow is None or key.task not in workflow.spec.places:
        return False
    index, place = workflow.spec.places[key.task]
    task = workflow.state.groups[index].tasks[place]
    return task.attempt == key.attempt and task.presence in _ALIVE
