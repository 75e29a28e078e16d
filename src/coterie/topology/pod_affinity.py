"""Inter-pod affinity: which pods may share a domain or a node, by labels, topology keys and host ports.

The rules are those of Kubernetes' scheduler. A pod is kept apart from another where an anti-affinity term of either
matches the other; a term without a selector matches no pod, one with an empty selector every pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

HOSTNAME = "kubernetes.io/hostname"
# The resource names under which Coterie counts, per node, the pods that affinity keeps apart or together.
APART = "coterie.dev/pod-anti-affinity/"
NEAR = "coterie.dev/pod-affinity/"
HOST_PORT = "coterie.dev/host-port/"
_ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - ports are compared here, and nothing listens


def counts_neighbours(resource: str) -> bool:
    """Return whether a resource stands for affinity between pods rather than for something that a node offers."""
    return resource.startswith((APART, NEAR, HOST_PORT))


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on a pod's labels: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy the condition; an absent label satisfies NotIn."""
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

    `selector` is None where the term matches no pod. Without `namespaces` the term applies to the pod's own namespace,
    or to all with `everywhere`. `same` and `different` are labels whose values must, or must not, equal those of the
    pod.
    """

    key: str
    selector: tuple[LabelRequirement, ...] | None
    namespaces: frozenset[str] = frozenset()
    everywhere: bool = False
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()

    def of(self, labels: Mapping[str, str], namespace: str) -> AffinityTerm:
        """Return the term as it applies to a pod with these labels in this namespace."""
        if self.selector is None:
            return self
        own = (
            *(LabelRequirement(key, "In", (labels[key],)) for key in self.same if key in labels),
            *(LabelRequirement(key, "NotIn", (labels[key],)) for key in self.different if key in labels),
        )
        spaces = self.namespaces or (frozenset() if self.everywhere else frozenset({namespace}))
        return replace(self, selector=(*self.selector, *own), namespaces=spaces, same=(), different=())

    def matches(self, pod: PodTraits) -> bool:
        """Return whether the term matches a pod."""
        if self.selector is None or not (self.everywhere or pod.namespace in self.namespaces):
            return False
        return all(requirement.holds(pod.labels) for requirement in self.selector)


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host port that a pod listens on; an empty address stands for all addresses."""

    port: int
    protocol: str = "TCP"
    address: str = ""

    @staticmethod
    def of(port: int, protocol: str | None, address: str | None) -> HostPort:
        """Return a host port from the fields of a container port."""
        return HostPort(port, protocol or "TCP", "" if (address or "") in _ANY_ADDRESS else address or "")

    def clashes(self, other: HostPort) -> bool:
        """Return whether two pods that listen on these ports cannot share a node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return not self.address or not other.address or self.address == other.address

    def __str__(self) -> str:
        address = f"{self.address}:" if self.address else ""
        return f"{address}{self.port}" if self.protocol == "TCP" else f"{address}{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class PodTraits:
    """The properties of a pod that decide which other pods it can run beside."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    apart: tuple[AffinityTerm, ...] = ()
    near: tuple[AffinityTerm, ...] = ()
    ports: frozenset[HostPort] = frozenset()
