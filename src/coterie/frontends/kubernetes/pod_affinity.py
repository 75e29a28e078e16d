"""The inter-pod affinity, host ports and device claims of a pod spec, not yet compared with other pods.

| field | read as |
|---|---|
| required pod affinity and anti-affinity | terms: a selector of pods, and the node label whose domains count |
| hostPort, and containerPort on the network of the host | host ports, which only one pod of a node can have |
| resourceClaims | claims, each by its template or by its own name |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, Reason
from coterie.frontends.kubernetes.objects import field_fault
from coterie.frontends.kubernetes.pod_spec_model import LabelSelectorModel, PodAffinityModel, PodSpecModel, PodTermModel
from coterie.topology.pod_affinity import AffinityTerm, HostPort, LabelRequirement

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
UNSUPPORTED_HINT = "The file may be right: `coterie validate` checks it. Coterie cannot say where its pods would go."


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """The terms and ports of a pod spec, each with its path."""

    apart: Mapping[AffinityTerm, Path] = field(default_factory=dict)
    near: Mapping[AffinityTerm, Path] = field(default_factory=dict)
    ports: Mapping[HostPort, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A device claim: of a `template`, or an existing one under its own name."""

    name: str
    path: Path
    template: str = ""
    existing: str = ""


def unsupported(path: Path, what: str) -> Fault:
    """Return the refusal of a valid field that a plan cannot honour."""
    message = f"{what} is not supported by a plan"
    return field_fault(FieldError.NOT_SUPPORTED, path, message, UNSUPPORTED_HINT, code=Reason.UNSUPPORTED)


def device_claims(model: PodSpecModel, path: Path) -> tuple[DeviceClaim, ...]:
    """Return the claims of a pod."""
    return tuple(
        DeviceClaim(each.name, (*path, "resourceClaims", index), each.template or "", each.claim or "")
        for index, each in enumerate(model.claims or ())
    )


def neighbours(model: PodSpecModel, path: Path, faults: list[Fault]) -> PodConstraints:
    """Return the terms and ports of a pod, and add their faults."""
    affinity = model.affinity
    return PodConstraints(
        dict(_terms(affinity.anti if affinity else None, (*path, "affinity", "podAntiAffinity"), faults)),
        dict(_terms(affinity.pod if affinity else None, (*path, "affinity", "podAffinity"), faults)),
        dict(_ports(model, path)),
    )


def _ports(model: PodSpecModel, path: Path) -> Iterator[tuple[HostPort, Path]]:
    for at, containers in (("containers", model.containers), ("initContainers", model.init_containers or ())):
        for number, container in enumerate(containers):
            if at == "initContainers" and container.restart_policy != "Always":
                continue  # ports of containers that end before the others start are not reserved
            for index, port in enumerate(container.ports or ()):
                # On the host network, every port of a container is a host port.
                taken = port.host_port or (port.container_port if model.host_network else None)
                if taken:
                    where = (*path, at, number, "ports", index)
                    yield HostPort.of(taken, port.protocol, port.host_ip), where


def _terms(affinity: PodAffinityModel | None, path: Path, faults: list[Fault]) -> Iterator[tuple[AffinityTerm, Path]]:
    for index, term in enumerate((affinity and affinity.required) or ()):
        where = (*path, _REQUIRED, index)
        chosen = term.namespace_selector
        if chosen is not None and (chosen.labels or chosen.expressions):
            faults.append(unsupported((*where, "namespaceSelector"), "pod affinity that selects namespaces by label"))
            continue
        yield _term(term, where, faults), where


def _term(term: PodTermModel, path: Path, faults: list[Fault]) -> AffinityTerm:
    selector = term.selector
    return AffinityTerm(
        term.topology_key,
        None if selector is None else tuple(_requirements(selector, (*path, "labelSelector"), faults)),
        frozenset(term.namespaces or ()),
        everywhere=term.namespace_selector is not None,
        same=tuple(term.same or ()),
        different=tuple(term.different or ()),
    )


def _requirements(selector: LabelSelectorModel, path: Path, faults: list[Fault]) -> Iterator[LabelRequirement]:
    yield from (LabelRequirement(key, "In", (value,)) for key, value in sorted((selector.labels or {}).items()))
    for index, each in enumerate(selector.expressions or ()):
        where = (*path, "matchExpressions", index)
        takes = _VALUES.get(each.operator)
        if takes is None:
            message = f"unknown operator {said(each.operator)} in a label selector"
            faults.append(field_fault(FieldError.INVALID, where, message, f"Operators are: {', '.join(_VALUES)}."))
        elif takes != bool(each.values):
            wanted = "at least one value" if takes else "no values"
            hint = 'Example: {key: app, operator: In, values: ["engine"]}.'
            faults.append(field_fault(FieldError.INVALID, where, f"operator {each.operator} takes {wanted}", hint))
        else:
            yield LabelRequirement(each.key, each.operator, tuple(each.values or ()))
