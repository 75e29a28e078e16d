"""The pods that hold the NVLink channel of their node, and the nodes that offer one, in a snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coterie.errors import SpecErrors
from coterie.planning.inputs import read_snapshot
from coterie.sources import Snapshot
from coterie.sources.kubectl import read_kubectl
from coterie.topology.channels import CHANNEL

DRIVER = "compute-domain.nvidia.com"


def node(name: str) -> Any:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}


def pod(name: str, *claims: Any) -> Any:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"nodeName": "n1", "containers": [], "resourceClaims": list(claims)},
    }


def claim(*users: str, driver: str = DRIVER, device: str = "channel-0", kind: str = "pods") -> Any:
    results = [{"driver": driver, "device": device, "pool": "n1", "request": "r"}]
    reserved = [{"resource": kind, "name": user, "uid": "u"} for user in users]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return {"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "ns"}, "status": status}


def resource_slice(name: str, *devices: str, driver: str = DRIVER) -> Any:
    spec = {"driver": driver, "nodeName": name, "devices": [{"name": device} for device in devices]}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{name}-x"}, "spec": spec}


def read(*items: Any) -> Snapshot:
    return read_kubectl(json.dumps({"kind": "List", "items": list(items)}).encode(), "f.json")


def holding(snapshot: Snapshot) -> set[str]:
    return {found.name for found in snapshot.cluster.pods if found.requests.get(CHANNEL)}


@pytest.mark.parametrize(
    ("named", "holds"),
    [
        ({"name": "compute-domain", "resourceClaimTemplateName": "wf-g-12345678-channel"}, True),
        ({"name": "mnnvl-claim", "resourceClaimTemplateName": "set-0-fabric"}, True),
        ({"name": "imex-channel-0", "resourceClaimTemplateName": "imex-channel-0"}, True),
        ({"name": "gpu", "resourceClaimTemplateName": "single-gpu"}, False),
        ({"name": "gpu", "resourceClaimName": "shared"}, False),
        ({"name": "c", "resourceClaimTemplateName": "channels-of-mine"}, False),
    ],
)
def test_a_channel_is_known_by_the_names_of_claims(named: Any, *, holds: bool) -> None:
    snapshot = read(node("n1"), pod("p", named))

    assert holding(snapshot) == ({"ns/p"} if holds else set())
    assert not snapshot.notices


def test_a_claim_that_was_given_a_channel_says_whose_it_is() -> None:
    named = {"name": "c", "resourceClaimTemplateName": "mine"}
    items = [node("n1"), pod("p", named), pod("q", named), pod("r", named)]

    assert holding(read(*items, claim("p"))) == {"ns/p"}
    assert holding(read(*items, claim("p", device="daemon-0"), claim("q", driver="gpu.nvidia.com"))) == set()
    assert holding(read(*items, claim("p", kind="jobs"))) == set()
    assert holding(read(*items, {"kind": "ResourceClaim"}, {"kind": "ResourceClaim", "status": None})) == set()


def test_slices_say_which_nodes_have_a_channel() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    slices = [
        resource_slice("n1", "channel-0", "daemon-0"),
        resource_slice("n2", "daemon-0"),
        resource_slice("n3", "channel-0", driver="gpu.nvidia.com"),
    ]
    cluster = read(*nodes, pod("p"), *slices).cluster

    assert cluster.allocatable[cluster.resource(CHANNEL)].tolist() == [1, 0, 0]
    # Those of other drivers say nothing.
    assert CHANNEL not in read(*nodes, pod("p"), slices[2]).cluster.resources


def test_claims_between_other_kinds_are_read_as_well() -> None:
    named = {"name": "c", "resourceClaimTemplateName": "mine"}
    snapshot = read({"kind": "Service"}, node("n1"), pod("p", named), claim("p"), resource_slice("n1", "channel-0"))

    assert holding(snapshot) == {"ns/p"}
    assert [notice.code for notice in snapshot.notices] == ["KindsIgnored"]


def test_a_claim_that_is_none_is_named() -> None:
    with pytest.raises(SpecErrors) as caught:
        read(node("n1"), {"kind": "ResourceClaim", "metadata": {"name": "c"}, "status": {"allocation": 7}})

    assert "resourceclaim" in str(caught.value)


def test_a_cluster_file_writes_a_channel_as_a_request() -> None:
    text = f"nodes: [{{name: n1, gpu: 8}}]\npods: [{{name: p, node: n1, requests: {{{CHANNEL}: 1}}}}]\n"
    snapshot = read_snapshot(text.encode(), "cluster.yaml")
    cluster = snapshot.cluster

    assert cluster.allocatable[cluster.resource(CHANNEL)].tolist() == [1]
    assert not snapshot.notices
