"""The environment variables that identify a task, the same for every backend."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coterie.errors import Notice
from coterie.frontends.workflow.read import Workflow
from coterie.frontends.workflow.rules import WorkflowGroup

# Variables of this prefix are always Coterie's own.
RESERVED = "COTERIE_"
_OTHER = re.compile(r"[^A-Z0-9]+")


def identity(workflow_id: str, team: WorkflowGroup, rank: int, hosts: str) -> dict[str, str]:
    """Return the variables of a task that are known before it has a node; `hosts` are those of its group.

    RANK, WORLD_SIZE and MASTER_ADDR are not among them: launchers count processes, of which a task with several GPUs
    has several, and would mistake the numbers of tasks for theirs.
    """
    return {
        "COTERIE_WORKFLOW": workflow_id,
        "COTERIE_GROUP": team.name,
        "COTERIE_TASK": team.members[rank].name,
        "COTERIE_RANK": str(rank),
        "COTERIE_WORLD_SIZE": str(len(team.members)),
        "COTERIE_HOSTS": hosts,
    }


def domain_variable(level: str) -> str:
    """Return the variable with the domain of a task's node at a level."""
    return f"{RESERVED}DOMAIN_{_OTHER.sub('_', level.upper())}"


def reserved_notices(workflow: Workflow, *others: str) -> Iterator[Notice]:
    """Yield notices of variables that a workflow sets in vain: Coterie's own, and those of the `others` names."""
    for member in (member for team in workflow.teams for member in team.members):
        for name in member.spec.environment:
            if name in others or name.startswith(RESERVED):
                path = (*member.path, "environment", name)
                message = f"{name} is ignored: Coterie sets this variable for each task"
                yield Notice("FieldIgnored", message, workflow.place(path, key=True), path)
