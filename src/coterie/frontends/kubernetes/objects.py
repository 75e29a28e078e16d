"""Kubernetes objects in files, and the faults in their outer shape.

A text holds any number of objects, as YAML documents, as JSON, or as items of a List. Coterie reads a few kinds; all
others are kept apart and named in one notice, since files that hold a ConfigMap beside a PodCliqueSet are common.

`path` of every fault begins at its object, so `field_path(path)` is the field that an API server would name; the place
is that in the user's file, also for an item of a List.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field

from coterie.document.located import Document, Path, decode, documents
from coterie.document.page import LIMITS, NodePosition, Page
from coterie.document.schema import Advice, DocumentModel, in_order, said, valid
from coterie.errors import Fault, FieldError, Notice, Place, Reason, SpecErrors, did_you_mean, nearest
from coterie.topology.devices import KINDS as DEVICE_KINDS

# The kinds that Coterie reads, and the versions of each.
KINDS: Mapping[str, tuple[str, ...]] = {
    "ClusterTopology": ("grove.io/v1alpha1",),
    "ClusterTopologyBinding": ("grove.io/v1alpha1",),
    "PodCliqueSet": ("grove.io/v1alpha1",),
    "DynamoGraphDeployment": ("nvidia.com/v1alpha1", "nvidia.com/v1beta1"),
}
# The namespace of objects that name none.
DEFAULT_NAMESPACE = "default"
# Existing kinds with names similar to those above: they are ignored, not reported as misspelt.
_COUSINS = frozenset(
    {"PodClique", "PodCliqueScalingGroup", "PodGang", "Topology", "ClusterPolicy"}
    | {"DynamoComponentDeployment", "DynamoGraphDeploymentRequest", "DynamoGraphDeploymentScalingAdapter"}
    | {"DynamoModel", "DynamoWorkerMetadata", "DynamoCheckpoint"}
)
_GROUPS = frozenset(version.partition("/")[0] for versions in KINDS.values() for version in versions)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_OBJECT = re.compile(rb"""^(?:---\s+)?(?:\{\s*)?["']?(?:apiVersion|kind)["']?\s*:""", re.MULTILINE)
_WORKFLOW = re.compile(rb"""^(?:---\s+)?(?:\{\s*)?["']?(?:workflow|default-values)["']?\s*:""", re.MULTILINE)
_HINT = "An object begins with apiVersion, kind and metadata."

M = TypeVar("M", bound=DocumentModel)


@dataclass(frozen=True, slots=True)
class DocumentPart(Document):
    """A part of a document as a document of its own; without a whole, data that comes from no text."""

    whole: Document | None = None
    at: Path = ()

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """Return the place in the whole of the value at a path."""
        return self.whole.place((*self.at, *path), key=key) if self.whole else Place(self.page.file)


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes object; `namespace` is empty where none is set, `document` locates paths in the object.

    `added` are the fields of a generated object without a source in the original.
    """

    api_version: str
    kind: str
    name: str
    namespace: str
    data: Mapping[str, Any]
    document: Document
    added: frozenset[Path] = frozenset()

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}"'

    def get(self, *path: str | int) -> Any:  # noqa: ANN401 - objects hold data of any shape
        """Return the data at a path, or None for an unknown path."""
        return self.document.get(path)

    def located(self, faults: Iterable[Fault]) -> list[Fault]:
        """Return faults with the places of their paths, in the order of the file."""
        return sorted(
            (each if each.place else each.at(self.document.place(each.path)) for each in faults), key=in_order
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """The objects of one text: those of the kinds that Coterie reads, the others, and notices for the user.

    `faults` are those of documents that are not objects, and of names that occur twice.
    """

    resources: tuple[Resource, ...]
    others: tuple[Resource, ...] = ()
    notices: tuple[Notice, ...] = ()
    faults: tuple[Fault, ...] = ()

    def of(self, *kinds: str) -> tuple[Resource, ...]:
        """Return the objects of some kinds, in the order of the text."""
        return tuple(resource for resource in self.resources if resource.kind in kinds)


class KubernetesObject(DocumentModel):
    """The base of the models of whole objects: the fields around `spec`; status and metadata may hold anything."""

    api_version: str = Field(alias="apiVersion")
    kind: str
    metadata: Any = None
    status: Any = None


def is_subdomain(name: str) -> bool:
    """Return whether a text can be the name of an object: a DNS subdomain of at most 253 characters."""
    return len(name) <= 253 and _NAME.fullmatch(name) is not None


def is_kubernetes(data: bytes) -> bool:
    """Return whether a file holds Kubernetes objects, by a top-level `apiVersion` or `kind`, and not a workflow."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"{", b"[")) and len(text) <= LIMITS.size:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return bool(_OBJECT.search(text)) and not _WORKFLOW.search(text)
        first = found[0] if isinstance(found, list) and found else found
        return isinstance(first, dict) and not first.keys().isdisjoint(("apiVersion", "kind"))
    return bool(_OBJECT.search(text)) and not _WORKFLOW.search(text)


def read_resources(data: bytes, file: str) -> Bundle:
    """Return every object of a text; raise `SpecErrors` with every fault in their outer shape."""
    bundle = draft_resources(data, file)
    if bundle.faults:
        raise SpecErrors(bundle.faults)
    return bundle


def draft_resources(data: bytes, file: str) -> Bundle:
    """Return the objects of a text with a valid outer shape, and the faults of the others."""
    faults: list[Fault] = []
    taken: list[Resource] = []
    others: list[Resource] = []
    for part in [part for document in _documents(data, file) for part in _objects(document, faults)]:
        found = _resource(part, faults)
        if found is not None:
            (taken if found.kind in KINDS else others).append(found)
    faults += _repeated(taken)
    return Bundle(tuple(taken), tuple(others), tuple(_ignored(others)), tuple(sorted(faults, key=in_order)))


def resource_of(data: Mapping[str, Any], file: str = "") -> Resource:
    """Return an object given as data, from an API or a snapshot; its faults name the file but no line."""
    faults: list[Fault] = []
    found = _resource(_unwritten(data, file), faults)
    if found is None or faults:
        raise SpecErrors(faults)
    return found


def field_fault(
    type_: FieldError, path: Path, message: str, hint: str = "", field: str = "", code: Reason = Reason.INVALID_SPEC
) -> Fault:
    """Return a fault in the format of an API server; `field` is the path it names where that is not `path`."""
    return Fault(message, code, hint, path=path, type=type_, field=field)


def shaped(model: type[M], resource: Resource, advice: Advice = lambda _model, _word: "") -> M:
    """Return the object as its model; raise `SpecErrors` for wrong types, missing fields and unknown fields."""
    try:
        return valid(model, resource.data, resource.document, advice)
    except SpecErrors as error:
        raise SpecErrors([_typed(fault, resource) for fault in error.faults]) from None


def _typed(fault: Fault, resource: Resource) -> Fault:
    kind = FieldError.REQUIRED if resource.get(*fault.path) is None else FieldError.INVALID
    return Fault(fault.message, fault.code, fault.hint, fault.place, fault.path, kind)


def _documents(data: bytes, file: str) -> list[Document]:
    text = decode(data, file)
    try:
        return documents(text, file)
    except SpecErrors:
        # Some JSON is not YAML, such as text with tabs or escaped surrogates. It has no places, but it is valid.
        if not text.lstrip().startswith(("{", "[")):
            raise
        try:
            return [_unwritten(_json(text), file)]
        except (ValueError, RecursionError):
            pass
        raise


def _json(text: str) -> Any:  # noqa: ANN401 - what it is, is yet to be seen
    """Return JSON read under the rules for YAML; raise ValueError for a duplicate key and for deep nesting."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key occurs twice")
        return found

    data = json.loads(text, object_pairs_hook=unique)
    front, depth = [data], 0
    while front:
        front = [
            below
            for each in front
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
        if depth > LIMITS.depth:
            raise ValueError("nested too deeply")
    return data


def _unwritten(data: Any, file: str) -> Document:  # noqa: ANN401 - what it is, is yet to be seen
    return DocumentPart(data, Page(file, ("",)), NodePosition(1, 1, 1))


def _objects(document: Document, faults: list[Fault]) -> Iterator[Document]:
    """Yield the objects of a document: itself, or the items of a List."""
    data = document.data
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or "items" not in data:
        yield document
        return
    items = data["items"]
    if items is not None and not isinstance(items, list):
        message = f"items of a {kind} must be a list, not {said(items)}"
        place = document.place(("items",))
        hint = "Write one item per object, each after a dash."
        faults.append(Fault(message, hint=hint, place=place, path=("items",), type=FieldError.INVALID))
        return
    assumed = {"apiVersion": data.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    for index, item in enumerate(items or ()):
        # The API omits the kind of the items in a typed list.
        entry = {**assumed, **item} if isinstance(item, dict) else item
        yield from _objects(
            DocumentPart(entry, document.page, NodePosition(1, 1, 1), document, ("items", index)), faults
        )


def _resource(document: Document, faults: list[Fault]) -> Resource | None:
    """Return an object with a valid outer shape; otherwise add its faults and return None."""

    def wrong(type_: FieldError, path: Path, message: str, hint: str) -> None:
        faults.append(field_fault(type_, path, message, hint).at(document.place(path)))

    data = document.data
    if not isinstance(data, dict):
        hint = (
            'Separate objects by lines of "---", or make them the items of a List.' if isinstance(data, list) else _HINT
        )
        wrong(FieldError.INVALID, (), f"an object must be a mapping, not {said(data)}", hint)
        return None
    before = len(faults)
    for key in ("apiVersion", "kind"):
        value = data.get(key)
        if value is None or value == "":
            wrong(FieldError.REQUIRED, (key,), f"{key} is missing", _HINT)
        elif not isinstance(value, str):
            wrong(FieldError.INVALID, (key,), f"{key} must be text, not {said(value)}", _HINT)
    if len(faults) > before:
        return None
    version, kind = data["apiVersion"], data["kind"]
    if problem := _kind_problem(version, kind):
        wrong(FieldError.NOT_SUPPORTED, *problem)
        return None
    metadata = data.get("metadata")
    if kind in KINDS:
        _check_names(metadata, kind, wrong)
    if len(faults) > before:
        return None
    names = metadata if isinstance(metadata, dict) else {}
    return Resource(version, kind, str(names.get("name", "")), str(names.get("namespace") or ""), data, document)


def _kind_problem(version: str, kind: str) -> tuple[Path, str, str] | None:
    """Return the fault of a kind or version that was probably meant to be one of Coterie's."""
    allowed = KINDS.get(kind)
    if allowed is not None:
        if version in allowed:
            return None
        hint = f"Write apiVersion: {nearest(version, allowed) or allowed[-1]}"
        return ("apiVersion",), f"{kind} is of apiVersion {' or '.join(allowed)}, not {said(version)}", hint
    meant = nearest(kind, KINDS)
    same = meant is not None and meant.casefold() == kind.casefold()
    if meant is None or kind in _COUSINS or not (same or version.partition("/")[0] in _GROUPS):
        return None
    return ("kind",), f"there is no kind {said(kind)} in {version}", f"{did_you_mean(kind, KINDS)}"


def _check_names(metadata: object, kind: str, wrong: Callable[[FieldError, Path, str, str], None]) -> None:
    if metadata is None:
        wrong(FieldError.REQUIRED, ("metadata", "name"), f"the {kind} has no name", "Give it one: metadata.name.")
        return
    if not isinstance(metadata, dict):
        wrong(FieldError.INVALID, ("metadata",), f"metadata must be a mapping, not {said(metadata)}", _HINT)
        return
    for key, limit in (("name", 253), ("namespace", 63)):
        value, path = metadata.get(key), ("metadata", key)
        if value is None or value == "":
            if key == "name":
                generated = "generateName works only with an API server. " if "generateName" in metadata else ""
                hint = f"{generated}Give it one: metadata.name."
                wrong(FieldError.REQUIRED, path, f"the {kind} has no name", hint)
        elif not isinstance(value, str):
            wrong(FieldError.INVALID, path, f"metadata.{key} must be text, not {said(value)}", "Put it in quotes.")
        elif len(value) > limit or not is_subdomain(value) or (key == "namespace" and "." in value):
            dots = ' and "."' if key == "name" else ""
            hint = (
                f'At most {limit} lower-case letters, digits, "-"{dots}, beginning and ending with a letter or digit.'
            )
            wrong(FieldError.INVALID, path, f"{said(value)} cannot be the {key} of an object", hint)


def _repeated(resources: Sequence[Resource]) -> Iterator[Fault]:
    seen: dict[tuple[str, str, str], Resource] = {}
    for resource in resources:
        key = (resource.kind, resource.namespace, resource.name)
        path = ("metadata", "name")
        if (first := seen.setdefault(key, resource)) is not resource:
            line = first.document.place(path).line
            hint = f"The first is on line {line}." if line else ""
            message = f"{resource} is in the file twice"
            yield field_fault(FieldError.DUPLICATE, path, message, hint).at(resource.document.place(path))


_SNAPSHOT = frozenset({"Node", "Pod"})


def _ignored(objects: Sequence[Resource]) -> Iterator[Notice]:
    if others := [each for each in objects if each.kind not in DEVICE_KINDS]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(each.kind for each in others).items()))
        kinds = kinds if len(kinds) <= 200 else f"{kinds[:199]}…"
        message = f"ignored, because Coterie does not read them: {kinds}"
        if any(each.kind in _SNAPSHOT for each in others):
            message = f"ignored: {kinds}; nodes and pods are a snapshot of a cluster, which is passed with --cluster"
        yield Notice("KindsIgnored", message, others[0].document.place(()))
