"""Claims to NVLink channels: the pods that hold one, and the nodes that offer one.

Where a snapshot has the ResourceClaims and ResourceSlices of NVIDIA's driver, these decide. Otherwise a pod's claims
are recognised by the ComputeDomains of the snapshot, or by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from coterie.topology.channels import CHANNEL, DRIVER
from coterie.topology.cluster import Node, Pod
from coterie.topology.devices import ClaimTemplates, Device

_DEVICE = "channel"


class PodClaim(msgspec.Struct, gc=False, rename="camel"):
    """A claim that a pod names."""

    name: str = ""
    resource_claim_template_name: str | None = None


class _Meta(msgspec.Struct, gc=False):
    namespace: str = "default"


class ClaimResult(msgspec.Struct, gc=False):
    """An allocated device; the pool of a channel is its node."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class ClaimDevices(msgspec.Struct, gc=False):
    """The allocated devices of a claim."""

    results: list[ClaimResult] | None = None


class ClaimAllocation(msgspec.Struct, gc=False):
    """The allocation of a claim."""

    devices: ClaimDevices | None = None


class ClaimUser(msgspec.Struct, gc=False):
    """An object, usually a pod, for which a claim is reserved."""

    resource: str = ""
    name: str = ""


class ClaimStatus(msgspec.Struct, gc=False, rename="camel"):
    """The allocation of a claim, and its users."""

    allocation: ClaimAllocation | None = None
    reserved_for: list[ClaimUser] | None = None

    @property
    def results(self) -> Sequence[ClaimResult]:
        """The devices that are allocated; none before the allocation."""
        devices = self.allocation.devices if self.allocation else None
        return (devices.results if devices else None) or ()


class BareClaim(msgspec.Struct, gc=False):
    """A claim, its allocation, and the pods that use it."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: ClaimStatus | None = None


class _Device(msgspec.Struct, gc=False):
    name: str = ""


class _SliceSpec(msgspec.Struct, gc=False, rename="camel"):
    driver: str = ""
    node_name: str = ""
    devices: list[_Device] | None = None


class BareSlice(msgspec.Struct, gc=False):
    """Devices that a driver offers on a node."""

    spec: _SliceSpec | None = None


class ClaimItem(BareClaim, gc=False, tag_field="kind", tag="ResourceClaim"):
    """A ResourceClaim with its kind."""


class SliceItem(BareSlice, gc=False, tag_field="kind", tag="ResourceSlice"):
    """A ResourceSlice with its kind."""


def claims_channel(claims: Iterable[PodClaim], namespace: str, templates: ClaimTemplates) -> bool:
    """Return whether one of a pod's claims is for a channel."""
    return any(
        templates.device(claim.name, claim.resource_claim_template_name or "", namespace) is Device.CHANNEL
        for claim in claims
    )


def channel_users(claims: Iterable[BareClaim]) -> frozenset[str]:
    """Return the pods for which a channel is reserved, as `namespace/name`."""
    return frozenset(
        f"{claim.metadata.namespace}/{user.name}"
        for claim in claims
        if claim.status and _is_channel(claim.status)
        for user in claim.status.reserved_for or ()
        if user.resource == "pods"
    )


def channel_nodes(slices: Iterable[BareSlice]) -> frozenset[str]:
    """Return the nodes that offer a channel."""
    return frozenset(
        found.spec.node_name
        for found in slices
        if found.spec
        and found.spec.driver == DRIVER
        and any(device.name.startswith(_DEVICE) for device in found.spec.devices or ())
    )


def with_claims(
    nodes: Sequence[Node], pods: Sequence[Pod], claims: Iterable[BareClaim], slices: Iterable[BareSlice]
) -> tuple[list[Node], list[Pod]]:
    """Return nodes and pods with the channels that they offer and hold."""
    giving, users = channel_nodes(slices), channel_users(claims)
    return (
        [
            replace(node, allocatable={**node.allocatable, CHANNEL: 1}) if node.name in giving else node
            for node in nodes
        ],
        [replace(pod, requests={**pod.requests, CHANNEL: 1}) if pod.name in users else pod for pod in pods],
    )


def _is_channel(status: ClaimStatus) -> bool:
    return any(result.driver == DRIVER and result.device.startswith(_DEVICE) for result in status.results)
