"""Changes of a workflow by the options of its submission, stored with it for its whole life.

They are the remedies that a plan offers. Those that concern other workloads and nodes change nothing about a workflow:
it waits until they have come true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coterie.errors import UsageError
from coterie.frontends.workflow.model import WorkflowFile
from coterie.frontends.workflow.read import Workflow
from coterie.frontends.workflow.rules import workflow_faults
from coterie.gang.tree import Gang
from coterie.placement.whatif import (
    AllowExcluded,
    Change,
    Coarsen,
    Keep,
    Prefer,
    Release,
    Tolerate,
    Uncordon,
    changed_gang,
    options,
)
from coterie.rendering.command_line import words
from coterie.topology.levels import Topology
from coterie.topology.ranges import fold

Json = dict[str, Any]


def amendment_of(changes: Sequence[Change], gangs: Iterable[Gang], topology: Topology) -> Json:
    """Return the stored form of changes: the tasks left out, and the changed constraints of the others."""
    left_out: list[str] = []
    for gang in gangs:
        kept = gang
        for change in changes:
            if isinstance(change, Keep):
                kept = changed_gang(change, kept, topology) or kept
        names = {task.name for task in kept.all_tasks()}
        left_out += (task.name for task in gang.all_tasks() if task.name not in names)
    return {
        "prefer": [change.level for change in changes if isinstance(change, Prefer)],
        "coarsen": [[change.level, change.to] for change in changes if isinstance(change, Coarsen)],
        "tolerate": [key for change in changes if isinstance(change, Tolerate) for key in change.keys],
        "allow_excluded": any(isinstance(change, AllowExcluded) for change in changes),
        "left_out": left_out,
    }


def amended(workflow: Workflow, amendment: Mapping[str, Any]) -> Workflow:
    """Return a workflow with a stored amendment; raise `UsageError` where too little is left of it."""
    changes: tuple[Change, ...] = (
        *(Prefer(level) for level in amendment["prefer"]),
        *(Coarsen(level, to) for level, to in amendment["coarsen"]),
        *(Tolerate((key,)) for key in amendment["tolerate"]),
        *([AllowExcluded()] if amendment["allow_excluded"] else []),
    )
    return replace(_smaller(workflow, frozenset(amendment["left_out"])), changes=changes)


def _smaller(workflow: Workflow, left_out: frozenset[str]) -> Workflow:
    if not left_out:
        return workflow
    for team in workflow.teams:
        if team.lead in left_out:
            hint = "Keep it; the tasks of a group are kept in the order of the file."
            raise UsageError(f'--tasks leaves out "{team.lead}", the lead of group "{team.name}"', hint)
    teams = tuple(
        replace(team, members=tuple(member for member in team.members if member.name not in left_out))
        for team in workflow.teams
    )
    groups = [
        team.spec.model_copy(update={"tasks": [member.spec for member in team.members]})
        for team in teams
        if not team.plain
    ]
    spec = workflow.spec.model_copy(update={"groups": groups} if groups else {})
    for fault in workflow_faults(WorkflowFile.model_construct(workflow=spec)):
        raise UsageError(f"--tasks leaves out too much: {fault.message}", "Keep more tasks.")
    return replace(workflow, spec=spec, teams=teams)


def sentences(changes: Sequence[Change], gangs: Sequence[Gang], topology: Topology) -> Iterator[str]:
    """Yield the effect of each change on a workflow, and the changes without any."""
    for change in changes:
        after = [changed_gang(change, gang, topology) or gang for gang in gangs]
        if isinstance(change, Release | Uncordon):
            yield _awaited(change)
        elif after == list(gangs):
            yield f"{' '.join(words(options(change)))} changes nothing about this workflow"
        else:
            yield _sentence(change, gangs, after)


def _sentence(change: Change, before: Sequence[Gang], after: Sequence[Gang]) -> str:
    match change:
        case Prefer(level):
            return f"{level} is preferred instead of required"
        case Coarsen(level, to):
            return f"{to} is asked for instead of {level}"
        case Tolerate(keys):
            return f"its tasks tolerate the {'taint' if len(keys) == 1 else 'taints'} {' and '.join(keys)}"
        case Keep(name, _, _):
            had, has = (
                [task.name for gang in gangs for task in gang.all_tasks() if gang.name == name]
                for gangs in (before, after)
            )
            gone = [task for task in had if task not in set(has)]
            return f'group "{name}" runs {len(has)} of {len(had)} tasks; left out: {fold(gone)}'
        case _:
            return "nodesExcluded is ignored"


def _awaited(change: Release | Uncordon) -> str:
    if isinstance(change, Release):
        return f"it waits until {change.owner} has ended; submitting it ends nothing else"
    verb = "is" if len(change.nodes) == 1 else "are"
    return f"it waits until {fold(change.nodes)} {verb} uncordoned; submitting it changes no node"
