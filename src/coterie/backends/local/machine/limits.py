"""The task limits of this machine: for one workflow, and for tasks that start together."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.backends.local.machine import open_files
from coterie.errors import Fault, Notice, Reason
from coterie.frontends.workflow.read import Workflow

# Each is a folder on the disk, a part of every saved state, and a process for a while: many more are a mistake.
MOST_TASKS = 10_000


def too_many(tasks: int, processes: int) -> tuple[str, str] | None:
    """Return the fault and the hint for this many tasks that start together; nothing where they may."""
    most = open_files.at_a_time(processes)
    if tasks <= most:
        return None
    if tasks > processes:
        bound = f"at most {processes:,} tasks run at a time here"
        change = f"Start Coterie with --processes {tasks} or more"
    else:
        bound = (
            f"at most {most:,} tasks run at a time here, because no more than {open_files.limit():,} files may be open"
        )
        change = f"Allow Coterie to open more files (ulimit -n {open_files.wanted_for(tasks)})"
    return bound, f"{change}, make the group smaller, or let its tasks run without one another (barrier: false)."


def task_count(workflow: Workflow) -> int:
    """Return how many tasks a workflow has."""
    return sum(len(team.members) for team in workflow.teams)


def task_count_faults(workflow: Workflow, processes: int) -> Iterator[Fault]:
    """Yield the faults in the number of a workflow's tasks, given the number of processes at a time."""
    tasks = task_count(workflow)
    if tasks > MOST_TASKS:
        yield Fault(
            f"the workflow has {tasks:,} tasks, and at most {MOST_TASKS:,} are allowed",
            hint="Submit it as several workflows, or let one task do the work of many.",
            path=workflow.teams[0].path[:-1],
            place=workflow.place(workflow.teams[0].path[:-1], key=True),
        )
    for team in workflow.teams:
        # A single task waits for no others, and the tasks of a group without a barrier begin as capacity permits.
        together = len(team.members) if team.spec.barrier else 1
        if found := too_many(together, processes):
            bound, hint = found
            path = (*team.path, "tasks")
            yield Fault(
                f'group "{team.name}" has {together:,} tasks that start together, and {bound}',
                hint=hint,
                path=path,
                place=workflow.place(path, key=True),
            )


def task_count_notices(workflow: Workflow, processes: int) -> Iterator[Notice]:
    """Yield the same as notices, for a plan without a submission."""
    for fault in task_count_faults(workflow, processes):
        yield Notice(
            Reason.NEVER_FITS.value, f"{fault.message}; it is refused when it is submitted", fault.place, fault.path
        )
