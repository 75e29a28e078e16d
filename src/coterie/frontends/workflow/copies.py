"""Copies among the tasks of a workflow: those that a smaller run of it could leave out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coterie.frontends.workflow.model import TaskSpec
from coterie.frontends.workflow.rules import WorkflowGroup

_REFERENCE = re.compile(r"\{\{\s*host:\s*([\w.-]+)\s*\}\}")
# Parts of a command that state the number of tasks; a range, as elastic launchers accept, is not a fixed number.
_FIXED_SIZE = re.compile(
    r"(?i)(?:nnodes|world[-_]?size|num[-_]?(?:nodes|workers|machines|hosts|processes|tasks))['\"=:\s]*\d+(?!\d*:\d)"
)


def spare_tasks(teams: Sequence[WorkflowGroup]) -> frozenset[str]:
    """Return the tasks that their group could do without.

    Such a task equals one listed before it in all but its name, is not the lead, is named by no other task as a host or
    an input, and no task of the group states the number of tasks.
    """
    named = {name for team in teams for member in team.members for name in _references(member.spec)}
    found = set[str]()
    for team in teams:
        if any(_FIXED_SIZE.search(" ".join(_texts(member.spec))) for member in team.members):
            continue
        kinds = set[object]()
        for member in team.members:
            kind = _kind(member.spec)
            if kind not in kinds:
                kinds.add(kind)
            elif not member.spec.lead and member.name not in named:
                found.add(member.name)
    return frozenset(found)


def _references(spec: TaskSpec) -> Iterator[str]:
    for text in _texts(spec):
        yield from _REFERENCE.findall(text)
    yield from (each.task for each in spec.inputs if each.task)


def _texts(spec: TaskSpec) -> Iterator[str]:
    yield from spec.command
    yield from spec.args
    yield from (f"{name}={value}" for name, value in spec.environment.items())
    yield from (file.contents for file in spec.files if file.contents)


def _kind(spec: TaskSpec) -> object:
    """Return the properties of a task that decide what it does."""
    files = tuple((file.path, file.contents, file.localpath) for file in spec.files)
    inputs = tuple((each.task, each.url) for each in spec.inputs)
    environment = tuple(sorted(spec.environment.items()))
    return spec.image, tuple(spec.command), tuple(spec.args), environment, spec.resource, files, inputs
