"""The reading of a workflow file to a valid `Workflow`, or to every fault in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from coterie.document.file_kind import FileKind, expect
from coterie.document.located import Document, Path, decode, load
from coterie.document.repair import read_repaired
from coterie.document.schema import DocumentModel, in_order, named_fields, valid
from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.frontends.template.render import RenderedText, render
from coterie.frontends.workflow.model import ResourceSpec, TaskSpec, WorkflowFile, WorkflowSpec
from coterie.frontends.workflow.repair import follows_from
from coterie.frontends.workflow.rules import (
    WorkflowGroup,
    WorkflowResource,
    elsewhere,
    groups_of,
    resources_of,
    workflow_faults,
)
from coterie.frontends.workflow.tokens import token_faults

if TYPE_CHECKING:
    from coterie.placement.whatif import Change


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow that obeys every rule that can be checked without a pool.

    `changes` are those that its user makes to it with options. `rendered` is its rendered text, where it is a template.
    """

    spec: WorkflowSpec
    teams: tuple[WorkflowGroup, ...]
    resources: Mapping[str, WorkflowResource]
    document: Document = field(repr=False)
    notices: tuple[Notice, ...] = ()
    changes: tuple[Change, ...] = ()
    rendered: RenderedText | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.spec.name

    @property
    def pool(self) -> str | None:
        """The pool that the file names, if any."""
        return self.spec.pool

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Return the place of a path in the user's file."""
        return self.document.place(path, key=key)


@dataclass(frozen=True, slots=True)
class Draft:
    """A workflow file with its faults, and the part of it that can be read.

    `workflow` is None where too little can be read. Its values at the paths `gone` are placeholders, not what the user
    wrote.
    """

    faults: tuple[Fault, ...]
    workflow: Workflow | None
    gone: frozenset[Path] = frozenset()


def read_workflow(
    data: bytes,
    file: str,
    *,
    sets: Sequence[str] = (),
    set_strings: Sequence[str] = (),
    rendered: RenderedText | Mapping[str, Any] | None = None,
) -> Workflow:
    """Return the workflow in a file with its template variables; raise `SpecErrors` with every fault.

    `rendered` is an earlier rendering of the same text with the same variables, or its stored form.
    """
    draft = draft_workflow(data, file, sets=sets, set_strings=set_strings, rendered=rendered)
    if draft.faults or draft.workflow is None:
        raise SpecErrors(draft.faults)
    return draft.workflow


def draft_workflow(
    data: bytes,
    file: str,
    *,
    sets: Sequence[str] = (),
    set_strings: Sequence[str] = (),
    rendered: RenderedText | Mapping[str, Any] | None = None,
) -> Draft:
    """Return a workflow file read as far as possible; raise `SpecErrors` where its template or its YAML is invalid."""
    expect(FileKind.WORKFLOW, data, file)
    said = decode(data, file)
    if rendered is None:
        page = render(said, file, sets, set_strings)
    else:
        page = rendered if isinstance(rendered, RenderedText) else RenderedText.of_json(rendered, file, said)
    document = load(page.text, page.file, shown=page.shown, origins=page.origins)
    own, repaired = read_repaired(document.data, lambda data: valid(WorkflowFile, data, document, _advice))
    if repaired is None:
        return Draft(own, None)
    model, gone = repaired.content, repaired.gone
    teams, resources = groups_of(model), resources_of(model)
    found = workflow_faults(model, token_faults(teams))
    further = located((fault for fault in found if not follows_from(fault, gone)), document)
    workflow = Workflow(model.workflow, teams, resources, document, rendered=page if page.templated else None)
    if own or further:
        # A loop repeats its mistakes, and each of them is one.
        once: dict[object, Fault] = {}
        for fault in sorted((*own, *further), key=in_order):
            once.setdefault((fault.message, fault.place), fault)
        return Draft(tuple(once.values()), workflow, gone)
    notices = (
        *page.notices,
        *_ignored(model.workflow, teams, document),
        *_bare_sizes(resources, document),
    )
    return Draft((), replace(workflow, notices=notices))


def located(faults: Iterable[Fault], document: Document) -> list[Fault]:
    """Return faults with the places of their paths, in the order of the file."""
    return sorted((fault.at(document.place(fault.path)) for fault in faults), key=in_order)


def _advice(model: type[DocumentModel] | None, word: str) -> str:
    """Return where a misplaced field belongs."""
    if word == "default-values":
        return "default-values belongs at the top level, beside workflow, in column one."
    if model is TaskSpec and word == "resources":
        return "A task names one resource spec with resource: NAME; the specs are under workflow.resources."
    if model is not ResourceSpec and word in named_fields(ResourceSpec):
        return f"{word} belongs to a resource spec: workflow.resources.NAME.{word}."
    if model is WorkflowFile and word in named_fields(WorkflowSpec):
        return f"{word} belongs under workflow; indent it."
    if word in ("exec_timeout", "queue_timeout"):
        return f"{word} belongs to the workflow's time limits: workflow.timeout.{word}."
    if model is WorkflowSpec and word in named_fields(TaskSpec):
        return f"{word} belongs to a task: workflow.tasks."
    return ""


# None of these fields affects placement, so a plan is correct without them; that is why this is a warning and not an
# error. A backend that runs tasks sees the same fields in the specs and can be stricter.
_NOT_DONE = {
    "credentials": "Coterie does not provide secrets",
    "outputs": "Coterie does not upload to object storage",
    "checkpoint": "Coterie does not save checkpoints",
    "privileged": "Coterie never runs privileged containers",
    "hostNetwork": "Coterie never uses the node's network",
    "downloadType": "Coterie does not download inputs",
    "cacheSize": "Coterie does not cache inputs",
    "kpis": "Coterie does not collect metrics",
    "backend": "the pool decides which backend runs the workflow",
}

_ATTRIBUTES = [
    (attribute, name)
    for attribute, info in TaskSpec.model_fields.items()
    if (name := info.alias or attribute) in _NOT_DONE
]


def _ignored(flow: WorkflowSpec, teams: Sequence[WorkflowGroup], document: Document) -> Iterator[Notice]:
    """Yield one notice for each field without effect, at its first use, with the number of tasks that set it."""
    uses: dict[tuple[str, str], list[Path]] = {}
    if flow.backend is not None:
        uses["backend", _NOT_DONE["backend"]] = [("workflow", "backend")]
    for member in (member for team in teams for member in team.members):
        for attribute, name in _ATTRIBUTES:
            if getattr(member.spec, attribute):
                uses.setdefault((name, _NOT_DONE[name]), []).append((*member.path, name))
        for number, entry in enumerate(member.spec.inputs):
            path = (*member.path, "inputs", number)
            if entry.url is not None:
                why = "Coterie does not download from object storage"
                uses.setdefault(("inputs.url", why), []).append((*path, "url"))
            elif elsewhere(entry):
                why = f'"{entry.task}" is a task of another workflow, which Coterie does not wait for'
                uses.setdefault(("inputs.task", why), []).append((*path, "task"))
    for (name, why), paths in uses.items():
        count = f" (in {len(paths)} places)" if len(paths) > 1 else ""
        yield Notice("FieldIgnored", f"{name} is ignored{count}: {why}", document.place(paths[0], key=True), paths[0])


def _bare_sizes(resources: Mapping[str, WorkflowResource], document: Document) -> Iterator[Notice]:
    for resource in resources.values():
        for name in ("memory", "storage"):
            path = (*resource.path, name)
            written = document.get(path)
            if written is not None and str(written).isdigit() and int(written) > 0:
                message = f"{name} {written} has no unit and means {written} bytes; write {written}Gi for gibibytes"
                yield Notice("NoUnit", message, document.place(path), path)
