"""ComputeDomains that are not ready, clique by clique, and NVLink channels that nobody uses."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from coterie.backends.kai.driver.compute_domains import (
    ChannelClaim,
    ClaimAllocation,
    ClaimDevices,
    ClaimResult,
    ClaimStatus,
    ComputeDomains,
    ComputeDomainStatus,
    DomainNode,
    GangComputeDomain,
    shortage,
    unused_channels,
)
from coterie.backends.kai.driver.objects import ObjectMeta
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.topology.channels import DRIVER


@pytest.mark.parametrize(
    ("status", "nodes", "said"),
    [
        ("", [], "NVIDIA's controller has not answered for ComputeDomain d; without it no claim can be made"),
        ("NotReady", [], "ComputeDomain d is NotReady"),
        (
            "NotReady",
            [("n2", "c1", "NotReady"), ("n4", "c2", ""), ("n3", "c1", "Ready")],
            "ComputeDomain d is NotReady: c1: 1 of 2 nodes are ready (not n2); c2: 0 of 1 nodes are ready (not n4)",
        ),
    ],
)
def test_what_a_domain_lacks_is_told_by_clique(status: str, nodes: list[tuple[str, str, str]], said: str) -> None:
    found = [DomainNode(*one) for one in nodes]
    assert shortage(GangComputeDomain(ObjectMeta("d"), ComputeDomainStatus(status, found))) == said


def test_channels_of_claims_without_pods_are_named_with_their_nodes() -> None:
    def claim(name: str, driver: str = DRIVER, users: int = 0, *, allocated: bool = True) -> ChannelClaim:
        devices = ClaimDevices([ClaimResult(driver, f"node-{name}")])
        allocation = ClaimAllocation(devices) if allocated else None
        return ChannelClaim(ObjectMeta(name, "team"), ClaimStatus(allocation, [{"name": "p"}] * users))

    claims = [claim("left"), claim("used", users=1), claim("new", allocated=False), claim("gpu", "gpu.nvidia.com")]
    assert unused_channels(claims) == {
        "the NVLink channel of node node-left is held by ResourceClaim team/left, which no pod uses"
    }


def test_what_cannot_be_followed_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[CoterieError | None] = [Unavailable("no claims for you"), None, None]

    def listed(*_: object) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    monkeypatch.setattr("coterie.backends.kai.driver.compute_domains.list_served", listed)
    domains = ComputeDomains(cast("Api", None), "default", "s1", threading.Event())
    domains.check(channels=True)
    assert domains.troubles == ["ComputeDomains and NVLink channels cannot be followed: no claims for you"]
    domains.check(channels=True)
    assert domains.troubles == []
    assert answers == []
