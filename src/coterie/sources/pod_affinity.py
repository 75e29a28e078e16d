"""The host ports and anti-affinity terms of running Kubernetes pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from coterie.topology.pod_affinity import AffinityTerm, HostPort, LabelRequirement, PodTraits


class Port(msgspec.Struct, gc=False, rename="camel"):
    """A port of a container; the API sets the host port also for pods on the host network."""

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
    """Pods that a pod is kept apart from; the API has already added the `matchLabelKeys` to the selector."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class AntiAffinity(msgspec.Struct, gc=False):
    """The required anti-affinity of a pod."""

    required: list[PodTerm] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, gc=False, rename="camel"):
    """The affinity of a pod, limited to anti-affinity."""

    pod_anti_affinity: AntiAffinity | None = None


def traits_of(namespace: str, labels: Mapping[str, str], ports: Iterable[Port], affinity: Affinity | None) -> PodTraits:
    """Return what decides which pods can run beside a running pod; its own affinity is already satisfied."""
    taken = frozenset([HostPort.of(port.host_port, port.protocol, port.host_ip) for port in ports if port.host_port])
    anti = affinity.pod_anti_affinity if affinity else None
    apart = tuple(_term(term).of({}, namespace) for term in (anti.required if anti else None) or ())
    return PodTraits(namespace, labels, apart, ports=taken)


def _term(term: PodTerm) -> AffinityTerm:
    """Return a term; a namespace selector cannot be evaluated here, so it counts as all namespaces."""
    selector = None if term.label_selector is None else tuple(_requirements(term.label_selector))
    spaces, everywhere = frozenset(term.namespaces or ()), term.namespace_selector is not None
    return AffinityTerm(term.topology_key, selector, spaces, everywhere=everywhere)


def _requirements(selector: LabelSelector) -> Iterator[LabelRequirement]:
    yield from (LabelRequirement(key, "In", (value,)) for key, value in sorted((selector.match_labels or {}).items()))
    for each in selector.match_expressions or ():
        yield LabelRequirement(each.key, each.operator, tuple(each.values or ()))
