"""The planning view of a pod spec: its feasible nodes, and the fields that cannot be planned.

| field | in a plan |
|---|---|
| resources of containers, init containers and the pod; overhead | counted as kube-scheduler counts them |
| nodeSelector, required node affinity, tolerations | kept |
| host ports, required pod affinity and anti-affinity, resourceClaims | read unchanged: see `pod_affinity` |
| nodeName, matchFields, topologySpreadConstraints that must hold | not supported: they move pods |
| preferred affinity, spread constraints that may be missed | named in one warning |
| runtimeClassName, volumes from claims, schedulingGates | named in one warning: a plan cannot see what they require |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from coterie.document.located import Path
from coterie.document.page import NodePosition, Page
from coterie.document.quantities import LARGEST
from coterie.document.schema import faults_of, said
from coterie.errors import Fault, FieldError, Notice
from coterie.frontends.kubernetes.objects import DocumentPart, field_fault
from coterie.frontends.kubernetes.pod_affinity import (
    DeviceClaim,
    PodConstraints,
    device_claims,
    neighbours,
    unsupported,
)
from coterie.frontends.kubernetes.pod_spec_model import (
    ContainerModel,
    ExpressionModel,
    PodAffinityModel,
    PodSpecModel,
    TermModel,
)
from coterie.gang.tree import Expression, Shape, Toleration
from coterie.topology.cluster import CPU, MEMORY, STORAGE
from coterie.topology.pod_requests import Amounts, asked, pod_requests
from coterie.topology.quantity import parse_quantity

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False, "Gt": True, "Lt": True}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A field that changes nothing in a plan, with a short reason."""

    name: str
    why: str
    path: Path


@dataclass(frozen=True, slots=True)
class PlannablePod:
    """The planning view of a pod spec; with faults, the shape is meaningless."""

    shape: Shape
    faults: tuple[Fault, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    neighbours: PodConstraints = field(default_factory=PodConstraints)
    claims: tuple[DeviceClaim, ...] = ()


def read_pod(pod_spec: Mapping[str, Any], path: Path = ()) -> PlannablePod:
    """Return the planning view of a pod spec, whose path in the user's object is `path`; faults have no places yet."""
    try:
        model = PodSpecModel.model_validate(pod_spec)
    except ValidationError as error:
        return PlannablePod(Shape(), tuple(_misshapen(error, pod_spec, path)))
    faults = list(_unplannable(model, path))
    requests = _requests(model, path, faults)
    shape = Shape(
        requests=tuple(sorted(requests.items())),
        selector=tuple(sorted((model.node_selector or {}).items())),
        tolerations=tuple(dict.fromkeys(_tolerations(model, path, faults))),
        affinity=_node_affinity(model, path, faults),
    )
    beside = neighbours(model, path, faults)
    return PlannablePod(shape, tuple(faults), tuple(_soft(model, path)), beside, device_claims(model, path))


def _misshapen(error: ValidationError, pod_spec: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    unwritten = DocumentPart(pod_spec, Page("", ("",)), NodePosition(1, 1, 1))
    for each in faults_of(error, PodSpecModel, unwritten, lambda _model, _word: ""):
        kind = FieldError.REQUIRED if unwritten.get(each.path) is None else FieldError.INVALID
        yield replace(each, place=None, path=(*path, *each.path), type=kind)


def ignored_notice(ignored: Iterable[Ignored]) -> list[Notice]:
    """Return one warning that names every ignored field once, at the first of them; None when nothing is ignored."""
    uses: dict[tuple[str, str], list[Path]] = {}
    for each in ignored:
        uses.setdefault((each.name, each.why), []).append(each.path)
    if not uses:
        return []
    listed = "; ".join(
        f"{name}{f' (in {len(paths)} places)' if len(paths) > 1 else ''}: {why}" for (name, why), paths in uses.items()
    )
    first = next(iter(uses.values()))[0]
    return [Notice("FieldIgnored", f"a plan does not depend on these fields: {listed}", path=first)]


def _requests(model: PodSpecModel, path: Path, faults: list[Fault]) -> Amounts:
    for at, container in _containers(model, path):
        for kind in ("requests", "limits"):
            quantities = getattr(container.resources, kind) if container.resources else None
            for name, value in (quantities or {}).items():
                if not _divisible(name) and isinstance(parse_quantity(value), Fraction):
                    where = (*at, "resources", kind, name)
                    message = f"{said(value)} of {name} is not a whole number"
                    faults.append(field_fault(FieldError.INVALID, where, message, "Ask for a whole number of them."))
    whole = (model.resources.requests, model.resources.limits) if model.resources else (None, None)
    total = pod_requests(
        (_asked(each) for each in model.containers),
        ((_asked(each), each.restart_policy == "Always") for each in model.init_containers or ()),
        whole,
        model.overhead,
    )
    for name in [name for name, value in total.items() if value > LARGEST]:
        message = f"the pod asks for more {name} than Coterie can count"
        faults.append(field_fault(FieldError.INVALID, path, message, f"At most {LARGEST} is allowed."))
    return total


def _asked(container: ContainerModel) -> Amounts:
    resources = container.resources
    return asked(resources.requests, resources.limits) if resources else {}


def _divisible(resource: str) -> bool:
    return resource in (CPU, MEMORY, STORAGE) or resource.startswith("hugepages-")


def _containers(model: PodSpecModel, path: Path) -> Iterator[tuple[Path, ContainerModel]]:
    for name, containers in (("containers", model.containers), ("initContainers", model.init_containers or ())):
        for index, container in enumerate(containers):
            yield (*path, name, index), container


def _tolerations(model: PodSpecModel, path: Path, faults: list[Fault]) -> Iterator[Toleration]:
    for index, each in enumerate(model.tolerations or ()):
        operator = each.operator or "Equal"
        if operator in ("Equal", "Exists"):
            yield Toleration(each.key or "", operator, each.value or "", each.effect or "")
        else:
            where = (*path, "tolerations", index, "operator")
            message = f"toleration operator {said(operator)} is not Equal or Exists"
            faults.append(field_fault(FieldError.NOT_SUPPORTED, where, message, "Write Equal or Exists."))


def _node_affinity(model: PodSpecModel, path: Path, faults: list[Fault]) -> tuple[tuple[Expression, ...], ...]:
    affinity = model.affinity and model.affinity.node
    if not affinity or affinity.required is None:
        return ()
    where = (*path, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    terms = []
    for index, term in enumerate(affinity.required.terms):
        if term.fields:
            faults.append(unsupported((*where, index, "matchFields"), "node affinity by matchFields"))
        if term.expressions:
            terms.append(tuple(_expressions(term, (*where, index, "matchExpressions"), faults)))
    if not terms and not any(term.fields for term in affinity.required.terms):
        message = "the required node affinity has no conditions, so no node satisfies it"
        faults.append(field_fault(FieldError.REQUIRED, where, message, "Give it matchExpressions, or remove it."))
    return tuple(terms)


def _expressions(term: TermModel, path: Path, faults: list[Fault]) -> Iterator[Expression]:
    for index, each in enumerate(term.expressions or ()):
        if problem := _expression_problem(each):
            faults.append(field_fault(FieldError.INVALID, (*path, index), *problem))
        else:
            yield Expression(each.key, each.operator, tuple(each.values or ()))


def _expression_problem(each: ExpressionModel) -> tuple[str, str] | None:
    takes = _VALUES.get(each.operator)
    if takes is None:
        return f"unknown operator {said(each.operator)} in node affinity", f"Operators are: {', '.join(_VALUES)}."
    if takes != bool(each.values):
        wanted = "at least one value" if takes else "no values"
        return f"operator {each.operator} takes {wanted}", 'Example: {key: zone, operator: In, values: ["a"]}.'
    if each.operator in ("Gt", "Lt") and not _is_number(each.values or ()):
        return f"operator {each.operator} takes one whole number in quotes", 'Example: values: ["8"].'
    return None


def _is_number(values: Sequence[str]) -> bool:
    return len(values) == 1 and len(values[0]) <= 19 and values[0].removeprefix("-").isdecimal()


def _unplannable(model: PodSpecModel, path: Path) -> Iterator[Fault]:
    if not model.containers:
        where = (*path, "containers")
        yield field_fault(FieldError.REQUIRED, where, "the pod has no containers", "Give it at least one.")
    if model.node_name:
        yield unsupported((*path, "nodeName"), "a pod bound to a node by nodeName")
    for index, each in enumerate(model.spread or ()):
        if each.when != "ScheduleAnyway":
            where = (*path, "topologySpreadConstraints", index)
            yield unsupported(where, "a topology spread constraint that must hold")


def _pod_affinities(model: PodSpecModel) -> Iterator[tuple[str, str, PodAffinityModel]]:
    if model.affinity and model.affinity.pod:
        yield "pod affinity", "podAffinity", model.affinity.pod
    if model.affinity and model.affinity.anti:
        yield "pod anti-affinity", "podAntiAffinity", model.affinity.anti


def _soft(model: PodSpecModel, path: Path) -> Iterator[Ignored]:
    node = model.affinity and model.affinity.node
    if node and node.preferred:
        where = (*path, "affinity", "nodeAffinity", _PREFERRED)
        yield Ignored("preferred node affinity", "a plan honours only what is required", where)
    for name, place, found in _pod_affinities(model):
        if found.preferred:
            where = (*path, "affinity", place, _PREFERRED)
            yield Ignored(f"preferred {name}", "a plan honours only what is required", where)
    for index, each in enumerate(model.spread or ()):
        if each.when == "ScheduleAnyway":
            where = (*path, "topologySpreadConstraints", index)
            yield Ignored("topologySpreadConstraints", "pods are packed, not spread", where)
    if model.runtime_class:
        why = "the node requirements of the runtime class are not known"
        yield Ignored("runtimeClassName", why, (*path, "runtimeClassName"))
    for index, volume in enumerate(model.volumes or ()):
        if volume.claim or volume.ephemeral:
            yield Ignored("volumes", "the location of claimed volumes is not known", (*path, "volumes", index))
    if model.gates:
        yield Ignored("schedulingGates", "pods are planned as if their gates were open", (*path, "schedulingGates"))
