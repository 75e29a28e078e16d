"""The meaning of every field of a file, taken from the models: workflows, configurations, Kubernetes objects.

Paths in an object begin with its kind. Of a pod spec only Dynamo's additions are described; the rest is Kubernetes'.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic.fields import FieldInfo

from coterie.config.model import ConfigModel
from coterie.document.schema import DocumentModel, TypeName, keyed, model_of, named_fields
from coterie.frontends.dynamo.manifest import AlphaGraph, BetaGraph
from coterie.frontends.grove.podcliqueset.manifest import Manifest
from coterie.frontends.grove.topology_model import ClusterTopologyBindingModel, ClusterTopologyModel
from coterie.frontends.workflow.model import WorkflowFile

_OBJECTS: tuple[tuple[str, str, type[DocumentModel], str], ...] = (
    ("PodCliqueSet", "grove.io/v1alpha1", Manifest, "Grove: cliques of pods that start and scale together."),
    ("ClusterTopology", "grove.io/v1alpha1", ClusterTopologyModel, "Grove: the levels of a cluster, under a name."),
    (
        "ClusterTopologyBinding",
        "grove.io/v1alpha1",
        ClusterTopologyBindingModel,
        "Grove: a ClusterTopology under its later name.",
    ),
    ("DynamoGraphDeployment", "nvidia.com/v1beta1", BetaGraph, "Dynamo: the components of an inference service."),
    (
        "DynamoGraphDeployment/v1alpha1",
        "nvidia.com/v1alpha1",
        AlphaGraph,
        "Dynamo: the same in the older version of its API.",
    ),
)
# A name that occurs in every kind needs more of its path; a full screen of matches would not help.
_MOST_OTHERS = 12


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One field: `path` as users write it, `kind` in words, its subfields, and other fields of the same name."""

    path: str
    kind: str
    required: bool
    default: str
    description: str
    children: tuple[FieldDoc, ...] = ()
    also: tuple[str, ...] = ()


def describe_field(dotted: str) -> FieldDoc | None:
    """Return the field with a whole path or a path ending such as `topology`; the shallowest in file order wins."""
    wanted = tuple(part.casefold() for part in dotted.strip().strip(".").replace("[]", "").split("."))
    matches = [path for path in _catalogue() if _ends_with(path, wanted)]
    if not matches or not all(wanted):
        return None
    # A whole path wins over an ending, and fields under workflow win over others, since most questions concern them.
    best = min(matches, key=lambda path: (len(path) != len(wanted), path[0] != "workflow", len(path)))
    return _doc(best, _catalogue()[best], _others(best, matches))


def _others(best: tuple[str, ...], matches: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return further fields of a name, without those that another version of the same kind has in the same place."""
    found = {(_kind_of(path), *path[1:]): path for path in reversed(matches)}
    found.pop((_kind_of(best), *best[1:]), None)
    names = [".".join(path) for path in matches if path in found.values()]
    if len(names) > _MOST_OTHERS:
        names[_MOST_OTHERS - 1 :] = [f"and {len(names) - _MOST_OTHERS + 1} more"]
    return tuple(names)


def similar_fields(dotted: str) -> list[str]:
    """Return whole paths that an unknown name may have meant, best first."""
    last = dotted.strip().rpartition(".")[2].casefold()
    names = {path[-1].casefold(): path for path in reversed(_catalogue())}
    return [".".join(names[name]) for name in difflib.get_close_matches(last, names, n=3, cutoff=0.6)]


def all_fields() -> list[str]:
    """Return the whole path of every field, in file order."""
    return [".".join(path) for path in _catalogue()]


@cache
def _catalogue() -> dict[tuple[str, ...], FieldInfo]:
    found = {path: info for root in (WorkflowFile, ConfigModel) for path, info in _walk(root, ())}
    for name, version, model, description in _OBJECTS:
        found[name,] = _object(model, version, description)
        found.update(_walk(model, (name,)))
    return found


def _object(model: type[DocumentModel], version: str, description: str) -> FieldInfo:
    info = FieldInfo(annotation=model, default=None, description=description)
    info.metadata.append(TypeName(f"an object of {version}"))
    return info


def _walk(model: type[DocumentModel], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, info in _described(model).items():
        yield (*above, name), info
        below = model_of(info.annotation)
        if below is not None:
            yield from _walk(below, (*above, name))


def _described(model: type[DocumentModel]) -> dict[str, FieldInfo]:
    """Return the fields defined by Coterie; partly read models are Kubernetes'."""
    if model.model_config.get("extra") == "ignore":
        return {}
    return {name: info for name, info in named_fields(model).items() if info.description}


def _ends_with(path: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    end = tuple(step.casefold() for step in path[-len(wanted) :])
    return wanted in (end, (_kind_of(end), *end[1:]))


def _kind_of(path: tuple[str, ...]) -> str:
    """Return the first step of a path without a version."""
    return path[0].partition("/")[0]


def _doc(path: tuple[str, ...], info: FieldInfo, also: tuple[str, ...] = ()) -> FieldDoc:
    below = model_of(info.annotation)
    children = tuple(_leaf((*path, name), child) for name, child in _described(below).items()) if below else ()
    leaf = _leaf(path, info)
    return FieldDoc(leaf.path, leaf.kind, leaf.required, leaf.default, leaf.description, children, also)


def _leaf(path: tuple[str, ...], info: FieldInfo) -> FieldDoc:
    return FieldDoc(".".join(path), _kind(info), info.is_required(), _default(info), info.description or "")


def _default(info: FieldInfo) -> str:
    if info.is_required() or info.default is None or info.default_factory is not None or info.default in ((), ""):
        return ""
    return str(info.default).lower() if isinstance(info.default, bool) else str(info.default)


_PLAIN = {str: "text", int: "a whole number", bool: "true or false", float: "a number"}


def _kind(info: FieldInfo) -> str:
    words = next((each.text for each in reversed(info.metadata) if isinstance(each, TypeName)), None)
    return words or _in_words(info.annotation)


def _in_words(annotation: object) -> str:
    if isinstance(annotation, type) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if words := next((each.text for each in reversed(arguments) if isinstance(each, TypeName)), None):
        return words
    if origin is typing.Literal:
        return " or ".join(str(word) for word in arguments if word)
    if keyed(annotation):
        inner = next((part for part in arguments if keyed(part)), annotation)
        values = typing.get_args(inner)
        return "a mapping of names to values" if len(values) < 2 or model_of(values[1]) is None else "a mapping by name"
    if model_of(annotation) is not None:
        return "a list" if _listed(annotation) else "a mapping"
    if _listed(annotation):
        return "a list"
    inner = next((part for part in arguments if part is not type(None)), None)
    return _in_words(inner) if inner is not None else "anything"


def _listed(annotation: object) -> bool:
    if typing.get_origin(annotation) is tuple:
        return True
    return any(_listed(part) for part in typing.get_args(annotation) if typing.get_origin(annotation) is not dict)
