"""Tokens such as `{{host:worker0}}`, checked with the workflow and replaced by their values on the task's node.

All of them are known beforehand: the backend defines the names of hosts, and outputs and inputs are folders of the
task. Nothing is random: the uuid is derived from the workflow's identity.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.document.located import Path
from coterie.errors import Fault, field_path
from coterie.frontends.workflow.rules import WorkflowGroup, WorkflowTask, elsewhere
from coterie.frontends.workflow.values import suggestion

OUTPUT = "/coterie/output"
INPUT = "/coterie/input"

_TOKEN = re.compile(r"\{\{(?P<name>uuid|workflow_id|output|input|host)(?::(?P<what>[^}]+))?\}\}")


@dataclass(frozen=True, slots=True)
class TokenValues:
    """The values of tokens in one workflow."""

    workflow_id: str
    uuid: str
    hosts: Mapping[str, str]


@dataclass(slots=True)
class TokenReplacement:
    """The replacement of one task's tokens, with the folders and hosts it met, and the faults.

    `inputs` has the place where each input is first read, by its number.
    """

    values: TokenValues
    member: WorkflowTask
    folders: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    inputs: dict[int, Path] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def fill(self, text: str, *below: str | int) -> str:
        """Return the text with tokens replaced; `below` is its path in the task."""
        path = (*self.member.path, *below)
        return _TOKEN.sub(lambda found: self._value(found["name"], found["what"], found[0], path), text)

    def _value(self, name: str, what: str | None, token: str, path: Path) -> str:
        match name, what:
            case "uuid", None:
                return self.values.uuid
            case "workflow_id", None:
                return self.values.workflow_id
            case "output", None:
                self.folders.add(OUTPUT)
                return OUTPUT
            case "host", str(task):
                return self._host(task, path)
            case "input", str(which):
                return self._input(which, path)
        return token

    def _host(self, task: str, path: Path) -> str:
        if task not in self.values.hosts:
            hint = suggestion(task, list(self.values.hosts))
            self.faults.append(Fault(f"{{{{host:{task}}}}} names no task of the workflow", path=path, hint=hint))
            return ""
        self.hosts.add(task)
        return self.values.hosts[task]

    def _input(self, which: str, path: Path) -> str:
        inputs = self.member.spec.inputs
        number = next((index for index, entry in enumerate(inputs) if which in (str(index), entry.task)), None)
        if number is None:
            hint = f"Inputs are numbered from 0; the task has {len(inputs) or 'none'}."
            message = f'{{{{input:{which}}}}} is not an input of task "{self.member.name}"'
            self.faults.append(Fault(message, path=path, hint=hint))
            return ""
        folder = f"{INPUT}/{number}"
        self.folders.add(folder)
        self.inputs.setdefault(number, path)
        return folder


def unread_faults(filling: TokenReplacement) -> Iterator[Fault]:
    """Yield the inputs that no task fills: their folders would be empty, and the result different."""
    for number, path in filling.inputs.items():
        entry = filling.member.spec.inputs[number]
        if entry.url is not None:
            what = "a URL, and nothing is downloaded from object storage"
        elif elsewhere(entry):
            what = "a task of another workflow, whose output is not kept for it"
        else:
            continue
        where = field_path(path[len(filling.member.path) :])
        yield Fault(
            f'task "{filling.member.name}": {where} uses {{{{input:{number}}}}}, which is {what}',
            path=path,
            hint="Mount a folder that has the data (volumeMounts: [/data:/data]) and read it there, "
            "or name a task of an earlier group as input (inputs: [{task: NAME}]).",
        )


def token_faults(teams: Sequence[WorkflowGroup]) -> Iterator[Fault]:
    """Yield the tokens that name no task or input of the workflow; files beside the workflow file are not read.

    An input that no backend fills, such as a URL, is not one of them: where such a workflow fits can be planned.
    """
    members = [member for team in teams for member in team.members]
    values = TokenValues("", "", {member.name: "" for member in members})
    for member in members:
        filling = TokenReplacement(values, member)
        for text, below in _texts(member):
            if "{{" in text:
                filling.fill(text, *below)
        yield from filling.faults


def _texts(member: WorkflowTask) -> Iterator[tuple[str, Path]]:
    """Yield the texts of a task in which tokens are replaced, each with its path in the task."""
    spec = member.spec
    for name, words in (("command", spec.command), ("args", spec.args)):
        yield from ((word, (name, index)) for index, word in enumerate(words))
    yield from ((value, ("environment", name)) for name, value in spec.environment.items())
    for index, file in enumerate(spec.files):
        if file.contents is not None and not file.base64:
            yield file.contents, ("files", index, "contents")


def uuid_of(namespace: str, workflow: str) -> str:
    """Return the uuid of a workflow, always the same for the same name in the same namespace."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"coterie.dev/{namespace}/{workflow}"))
