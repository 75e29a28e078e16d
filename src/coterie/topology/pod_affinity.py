"""Pods and their neighbours: who may run beside whom, by labels, topology keys and ports of the node.

The rules are those of Kubernetes' scheduler. A pod is kept apart from another where a term of either of them matches
the other; a term without a selector matches nobody, one with an empty selector everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

HOSTNAME = "kubernetes.io/hostname"
# The names under which Coterie counts, as resources of nodes, what keeps pods apart or near.
APART = "coterie.dev/pod-anti-affinity/"
NEAR = "coterie.dev/pod-affinity/"
HOST_PORT = "coterie.dev/host-port/"
_ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - ports are compared here, and nothing listens


def counts_neighbours(resource: str) -> bool:
    """Tell whether a resource stands for who can run beside a pod, and not for anything that a node has."""
    return resource.startswith((APART, NEAR, HOST_PORT))


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a pod's labels: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy the condition; one that they lack is not in any list of values."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """The pods that a pod must be near, or apart from, within one domain of a node label.

    `selector` is None where the term matches nobody. Without `namespaces` it means those of the pod's own namespace, or
    with `everywhere` of any. `same` and `different` are labels whose values must be, or must not be, those of the pod.
    """

    key: str
    selector: tuple[Requirement, ...] | None
    namespaces: frozenset[str] = frozenset()
    everywhere: bool = False
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()

    def of(self, labels: Mapping[str, str], namespace: str) -> AffinityTerm:
        """Return the term as it is meant by a pod with these labels in this namespace."""
        if self.selector is None:
            return self
        own = (
            *(Requirement(key, "In", (labels[key],)) for key in self.same if key in labels),
            *(Requirement(key, "NotIn", (labels[key],)) for key in self.different if key in labels),
        )
        spaces = self.namespaces or (frozenset() if self.everywhere else frozenset({namespace}))
        return replace(self, selector=(*self.selector, *own), namespaces=spaces, same=(), different=())

    def matches(self, pod: PodTraits) -> bool:
        """Tell whether a pod is among those that are meant."""
        if self.selector is None or not (self.everywhere or pod.namespace in self.namespaces):
            return False
        return all(requirement.holds(pod.labels) for requirement in self.selector)


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod listens on; an empty address stands for all of them."""

    port: int
    protocol: str = "TCP"
    address: str = ""

    @staticmethod
    def of(port: int, protocol: str | None, address: str | None) -> HostPort:
        """Return a port as a container names it."""
        return HostPort(port, protocol or "TCP", "" if (address or "") in _ANY_ADDRESS else address or "")

    def clashes(self, other: HostPort) -> bool:
        """Tell whether two pods that listen on these ports cannot share a node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return not self.address or not other.address or self.address == other.address

    def __str__(self) -> str:
        address = f"{self.address}:" if self.address else ""
        return f"{address}{self.port}" if self.protocol == "TCP" else f"{address}{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class PodTraits:
    """All of a pod that decides beside which others it can run."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    apart: tuple[AffinityTerm, ...] = ()
    near: tuple[AffinityTerm, ...] = ()
    ports: frozenset[HostPort] = frozenset()
