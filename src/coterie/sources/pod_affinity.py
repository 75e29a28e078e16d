"""What Kubernetes' pods that run say of their neighbours: ports of the node, and whom they keep away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from coterie.topology.pod_affinity import AffinityTerm, HostPort, PodTraits, Requirement


class Port(msgspec.Struct, gc=False, rename="camel"):
    """A port of a container; the API names that of the node also where the pod is on the network of its host."""

    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class LabelExpression(msgspec.Struct, gc=False):
    """A condition on the labels of pods."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(msgspec.Struct, gc=False, rename="camel"):
    """Conditions on labels that must all hold."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelExpression] | None = None


class PodTerm(msgspec.Struct, gc=False, rename="camel"):
    """Pods that a pod is kept apart from; the API has added to the selector what `matchLabelKeys` stands for."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class AntiAffinity(msgspec.Struct, gc=False):
    """What must hold when the pod is scheduled."""

    required: list[PodTerm] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, gc=False, rename="camel"):
    """What a pod says of its neighbours, as far as it keeps others away."""

    pod_anti_affinity: AntiAffinity | None = None


def traits_of(namespace: str, labels: Mapping[str, str], ports: Iterable[Port], affinity: Affinity | None) -> PodTraits:
    """Return what decides who can run beside a pod that runs; what it wanted near it has found."""
    taken = frozenset([HostPort.of(port.host_port, port.protocol, port.host_ip) for port in ports if port.host_port])
    anti = affinity.pod_anti_affinity if affinity else None
    apart = tuple(_term(term).of({}, namespace) for term in (anti.required if anti else None) or ())
    return PodTraits(namespace, labels, apart, ports=taken)


def _term(term: PodTerm) -> AffinityTerm:
    """Return a term. Namespaces that are chosen by labels are not known, and taken for all there are."""
    selector = None if term.label_selector is None else tuple(_requirements(term.label_selector))
    spaces, everywhere = frozenset(term.namespaces or ()), term.namespace_selector is not None
    return AffinityTerm(term.topology_key, selector, spaces, everywhere=everywhere)


def _requirements(selector: LabelSelector) -> Iterator[Requirement]:
    yield from (Requirement(key, "In", (value,)) for key, value in sorted((selector.match_labels or {}).items()))
    for each in selector.match_expressions or ():
        yield Requirement(each.key, each.operator, tuple(each.values or ()))
