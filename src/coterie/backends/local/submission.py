"""Checks of a workflow whose tasks are to run as processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.backends.local.group_orders import WorkflowRun, notices_for, start_faults
from coterie.backends.local.machine.limits import MOST_TASKS, task_count, task_count_faults, task_count_notices
from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice
from coterie.frontends.workflow.read import Workflow


class LocalCheck:
    """The checks of the embedded scheduler."""

    def faults(self, workflow: Workflow, pool: Pool, files: Mapping[str, bytes], processes: int) -> Iterator[Fault]:  # noqa: ARG002 - the same for all pools
        """Yield the faults of tasks that would otherwise appear only when they are started."""
        yield from task_count_faults(workflow, processes)
        if task_count(workflow) <= MOST_TASKS:
            yield from start_faults(workflow, WorkflowRun("rehearsal", local=files))

    def notices(self, workflow: Workflow) -> tuple[Notice, ...]:
        """Return notices of how a run on this machine deviates from the workflow."""
        return notices_for(workflow)

    def size_notices(self, workflow: Workflow, processes: int) -> Iterator[Notice]:
        """Yield notices of groups that are too wide to start."""
        return task_count_notices(workflow, processes)
