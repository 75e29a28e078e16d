"""ComputeDomains that are not ready, clique by clique, and NVLink channels that nobody uses."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import cast

import httpx2
import pytest

from coterie.backends.kai.driver.objects import ObjectMeta
from coterie.backends.kai.driver.observation.compute_domains import (
    ComputeDomains,
    ComputeDomainStatus,
    DomainNode,
    GangComputeDomain,
    shortage,
)
from coterie.backends.kai.driver.observation.nvlink_channels import UNUSED_S, ChannelClaim, NvlinkChannels
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, CacheEntry, ChangeType
from coterie.kube.errors import ApiForbidden
from coterie.kube.wire import Meta
from coterie.sources.claims import ClaimAllocation, ClaimDevices, ClaimResult, ClaimStatus, ClaimUser
from coterie.topology.channels import DRIVER
from tests.eventually import eventually
from tests.kube.faulty_transport import api, page, status, stream, thing


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


def test_channels_of_claims_that_no_pod_has_used_for_a_while_are_named_with_their_nodes() -> None:
    now = 0.0
    channels = NvlinkChannels(cast("Api", None), lambda: now)

    def change(
        name: str, driver: str = DRIVER, users: int = 0, *, allocated: bool = True, did: ChangeType = ChangeType.ADDED
    ) -> None:
        allocation = ClaimAllocation(ClaimDevices([ClaimResult(driver, f"node-{name}")])) if allocated else None
        claim = ChannelClaim(ObjectMeta(name, "team"), ClaimStatus(allocation, [ClaimUser("pods", "p")] * users))
        channels.changed(CacheChange(did, CacheEntry(Meta(name=name, namespace="team"), claim)))

    change("left")
    change("used", users=1)
    change("new", allocated=False)
    change("gpu", "gpu.nvidia.com")
    assert channels.left_behind() == []
    now = UNUSED_S
    change("left", did=ChangeType.MODIFIED)
    assert channels.left_behind() == [
        "the NVLink channel of node node-left is held by ResourceClaim team/left, which no pod uses"
    ]
    change("left", did=ChangeType.DELETED)
    assert channels.left_behind() == []


def test_a_refused_watch_of_claims_is_begun_again_with_the_claims_of_that_time() -> None:
    allowed = threading.Event()
    allocation = {"devices": {"results": [{"driver": DRIVER, "pool": "n1"}]}}

    def server(request: httpx2.Request) -> httpx2.Response:
        if "watch" in request.url.params:
            return stream() if allowed.is_set() else status(403, "Forbidden", 'User "u" cannot watch resource')
        return page([] if allowed.is_set() else [thing("left", namespace="team", status={"allocation": allocation})])

    now = 0.0
    with api(server) as cluster:
        channels = NvlinkChannels(cluster, lambda: now)
        # The list is known whether or not the refusal of the watch has come already.
        with suppress(ApiForbidden):
            channels.open()
        now = UNUSED_S
        eventually(lambda: len(channels.left_behind()) == 1)
        eventually(lambda: channels._watch is None or not channels._watch.running)
        allowed.set()
        channels.open()
        try:
            eventually(lambda: channels._watch is not None and channels._watch.running)
            # What has gone while nobody watched is not told for ever.
            assert channels.left_behind() == []
        finally:
            channels.close()


def test_what_cannot_be_followed_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[CoterieError | None] = [Unavailable("no claims for you"), None, None]

    def listed(*_: object) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    for module in ("compute_domains", "nvlink_channels"):
        monkeypatch.setattr(f"coterie.backends.kai.driver.observation.{module}.list_served", listed)
    domains = ComputeDomains(cast("Api", None), "default", "s1", threading.Event())
    domains.check()
    assert domains.problems == ["ComputeDomains and NVLink channels cannot be followed: no claims for you"]
    domains.check()
    assert domains.problems == []
    assert answers == []
