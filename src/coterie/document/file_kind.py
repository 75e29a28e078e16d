"""The kind of a file, recognised by its top-level fields before anything else of it is read."""

from __future__ import annotations

import re
from enum import StrEnum

from coterie.errors import Fault, Place, SpecErrors

_TOP = re.compile(rb"^[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:", re.MULTILINE)
# A template may precede the fields, but only up to this many bytes.
_HEAD = 1 << 16
_KUBERNETES_JSON = re.compile(rb"[\s\xef\xbb\xbf]*\{\s*\"(?:apiVersion|kind)\"\s*:")


class FileKind(StrEnum):
    """The kinds of YAML files that can be recognised."""

    WORKFLOW = "a workflow"
    CONFIGURATION = "a configuration of backends and pools"
    CLUSTER = "a cluster file"
    KUBERNETES = "a Kubernetes object"


_SIGNS = {
    FileKind.WORKFLOW: frozenset({b"workflow"}),
    FileKind.CONFIGURATION: frozenset({b"backends", b"pools"}),
    FileKind.CLUSTER: frozenset({b"fleet", b"nodes"}),
}
_HINTS = {
    FileKind.WORKFLOW: "Workflows are arguments of their own: coterie plan FILE.",
    FileKind.CONFIGURATION: "Pass it with --config.",
    FileKind.CLUSTER: "Pass it with --cluster.",
    FileKind.KUBERNETES: (
        "Pass a snapshot of a cluster with --cluster. Workloads are for `coterie plan` and `coterie render`."
    ),
}

_NOT_RUN = (
    "Only workflows are submitted and run. `coterie plan`, `coterie validate` and `coterie render` also take "
    "PodCliqueSets and graph deployments; a snapshot of a cluster belongs to `coterie plan FILE --cluster SNAPSHOT`."
)


def kind_of(data: bytes) -> FileKind | None:
    """Return the only kind whose fields are at the top level of a text; None where no kind or several match."""
    fields = frozenset(_TOP.findall(data[:_HEAD]))
    found = [kind for kind, signs in _SIGNS.items() if fields & signs]
    if not found and ({b"apiVersion", b"kind"} <= fields or _KUBERNETES_JSON.match(data[:_HEAD])):
        return FileKind.KUBERNETES
    return found[0] if len(found) == 1 else None


def expect(wanted: FileKind, data: bytes, file: str) -> None:
    """Raise `SpecErrors` for a file that is recognised as a kind other than the wanted one.

    A cluster may also be a list of Kubernetes objects.
    """
    kind = kind_of(data)
    if kind is FileKind.KUBERNETES and wanted is FileKind.CLUSTER:
        return
    if kind is not None and kind is not wanted:
        raise mismatch(kind, wanted, file)


def mismatch(kind: FileKind, wanted: FileKind, file: str) -> SpecErrors:
    """Return the error about a file of one kind where another is wanted."""
    hint = _NOT_RUN if (kind, wanted) == (FileKind.KUBERNETES, FileKind.WORKFLOW) else _HINTS[kind]
    return SpecErrors([Fault(f"this is {kind}, not {wanted}", hint=hint, place=Place(file))])
